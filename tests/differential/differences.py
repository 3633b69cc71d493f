"""Where Serin answers otherwise than Triton 24.10, on purpose: each once, with its reason. What is not listed is a failure, and so is what does not occur.

A row: patterns of exchanges' names, the aspect (comparing.py), Triton's value and Serin's (None: any), why. The first that fits counts. Aspects and Triton's words are
patterns, too.
"""

import fnmatch
from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    names: tuple
    aspect: str
    triton: object
    serin: object
    why: str
    dialects: tuple = ("serin", "tritonserver")

    def fits(self, name, aspect, triton, serin):
        return (
            fnmatch.fnmatchcase(aspect, self.aspect)
            and (self.triton in (None, triton) or (aspect == "words" and fnmatch.fnmatchcase(triton, self.triton)))
            and self.serin in (None, serin)
            and any(fnmatch.fnmatchcase(name, pattern) for pattern in self.names)
        )


def row(names, aspect, triton, serin, why, *dialects):
    return Difference(tuple(names.split()), aspect, triton, serin, why, dialects or ("serin", "tritonserver"))


DIFFERENCES = [
    # Where Serin says more
    row("*", "type", "text/plain", "application/json", "what is JSON is called so, also in errors and probes"),
    row("verbs/* */verb", "headers", None, None, "a 405 says with Allow what the path takes (RFC 9110 asks for it)"),
    row("verbs/v2/*/live verbs/v2/*/ready ready/* */ready paths/v2/health/live?x=1", "json", None, None, "probes have a body: KServe's SDK reads it"),
    # Of itself and its models
    row("verbs/v2 paths/v2?x=1 grpc/ServerMetadata", "json*.name", "triton", "serin", "another server", "serin"),
    row("verbs/v2 paths/v2?x=1 grpc/ServerMetadata", "json*.extensions", None, None, "the extensions there are: no CUDA shared memory"),
    row("*", "json*.platform", "python", "onnx_serin", "another backend"),
    row("*", "json*.platform", "absent", "onnx_serin", "a model is told by its platform, not by its backend alone"),
    row("*", "json*.backend", "python", "serin", "another backend"),
    row("*", "json*.default_model_filename", "model.py", "model.onnx", "another backend"),
    row("*", "json*.version_policy.latest.num_versions", "1", "absent", "without a config.pbtxt all versions are served", "serin"),
    row("*", "json*.dynamic_batching.preferred_batch_size", "absent", None, "requests are batched without being asked to"),
    row("*", "json*.parameters.*", "absent", None, "what a version runs on, and why it takes no batches"),
    # What errors say
    row("*", "words", "Method Not Allowed", None, "which verb the path takes"),
    row("*", "words", "failed to parse the request JSON buffer*", None, "where the text ends to be JSON, and what stands there"),
    row("*", "words", "*attempt to *", None, "the tensor, the element and what it is, where Triton tells the JSON library's call"),
    row("*", "words", "*version*integral value*", None, "what a version is"),
    row("*", "words", "Not Found", None, "what was looked for, where the path leads to models; else the nearest path"),
    row("*", "words", "Request for unknown model*", None, "the nearest name, the versions that are ready; or that a path like this is not looked up"),
    row("*", "words", "request* is not available*", None, "the model is not there, whatever is asked of it"),
    row("*", "words", "Model version not ready", None, "it is not there"),
    row("*", "words", "*size mismatch*", None, "the shape, what it takes and what came"),
    row("*", "words", "*Shape does not match true shape*", None, "the shape, what it takes and what came"),
    row("*", "words", "*string *", None, "the shape, what it takes and what came"),
    row("*", "words", "*additional *", None, "how many bytes belong to no input, or what stands behind the JSON"),
    row("*", "words", "*unexpected explicit tensor data*", None, "the datatype and the list it came in"),
    row("*", "words", "*data-type is*", None, "the version; a datatype that is none is called so"),
    row("*", "words", "*unexpected inference *", None, "the version, the nearest name, and what the model has"),
    row("*", "words", "*expected * inputs but got*", None, "the version, and which input is missing or not the model's"),
    row("*", "words", "*unexpected shape*", None, "the shape in full, with the batch"),
    row("*", "words", "*has no shape but model requires batch dimension*", None, "the shape in full, with the batch"),
    row("*", "words", "*batch*size*", None, "how many rows the inputs have, or what came instead of them"),
    row("*", "words", "invalid datatype*", None, "which datatype, the nearest word for it, and what the model takes"),
    row("*", "words", "receiving * data via JSON is not supported*", None, "it is: the element that is none, or that the model's is another"),
    row("*", "words", "invalid value*", None, "what the parameter must be"),
    row("*", "words", "*must set only one of*", None, "whether there is no data, or twice"),
    row("grpc/infer/no-data", "words", "unable to find data*", None, "the shape, what it takes and what came"),
    row("grpc/infer/both", "words", "contents field must not*", None, "the version"),
    row("*", "words", "inference header size*", None, "the header, its value and the size of the body"),
    row("*", "words", "*already exists*", None, "that it was given twice"),
    row("*", "words", "*Raw request must*", None, "how many inputs the model has"),
    row("*", "words", "*For BYTE datatype raw input*", None, "where the element is cut short, or what the shape takes"),
    row("*", "words", "Unsupported compression type", None, "which coding, and where it is damaged"),
    row("*control/memory/register*", "words", "Unable to open *", None, "the client's name for it, or what a key is: messages tell nothing of the machine"),
    row("*", "words", "*shared memory region*", None, "that shared memory is off"),
    row("*", "words", "explicit model load*", None, "orders are not taken at the ports of clients, or the mode forbids them"),
    row("*", "words", "*specification is not supported", None, "which repository there is not"),
    row("infer/body/not-utf8", "words", "absent", None, "JSON is UTF-8", "serin"),
    # Paths
    row("paths/v2/ paths/v2/models/ paths/v2/models/identity/ paths/v2/models/identity/versions/1/", "status", 404, 200, "a slash at the end is no other path: clients of OVMS write it"),
    row("paths/v2/models", "status", 404, 200, "the list of models, as KServe has it"),
    row("versions/%31*", "status", 404, 200, "paths are unescaped once, then looked at"),
    row("versions/1%2F* versions/1/..* names/* infer/names/*", "status", 404, 400, "paths with dots, slashes and control bytes in escapes are refused before anybody looks for a model"),
    row("versions/*/ready versions/*/stats versions/1000000000000000000000* names/*/ready names/*/stats", "status", 400, 404, "a model or version that is not there is not found, whatever is asked of it"),
    row("versions/01* versions/00001*", "status", 200, 404, "versions are named in one way: without zeros in front"),
    row("index/wrong-kind index/broken", "status", 500, 400, "the client's fault is not the server's", "serin"),
    row("index/array index/null index/text", "status", 200, None, "the body must be an object"),
    # REST inference: bad input
    row("infer/numbers/BOOL/0 infer/numbers/BOOL/1", "status", 500, 200, "0 and 1 are what many languages have for BOOL"),
    row("infer/json/FP16* infer/binary/FP16*", "status", 400, 200, "FP16 can be written as JSON, too"),
    row("infer/numbers/*", "status", 200, None, "what does not fit its datatype is refused with its index, not cut"),
    row("infer/body/*", "status", 200, None, "a request is a JSON object without a byte order mark, with each key once and at most 100 levels deep; an empty one is no tensor"),
    row("verbs/v2/models/identity/infer", "status", 200, None, "no body and no length of its JSON is no request"),
    row("infer/shapes/zero-inside grpc/infer/shape/zero", "status", None, None, "data that its shape has no place for is a mistake"),
    row("infer/shapes/zero", "status", 400, 500, "data that its shape has no place for is found out before the batch of 0", "tritonserver"),
    row("infer/shapes/batch-huge", "status", "none", None, "Triton drops the connection"),
    row("infer/shapes/*", "status", 400, 413, "a tensor that no machine holds is too large", "serin"),
    row("infer/data/deeper infer/data/mixed infer/data/transposed", "status", 200, None, "lists that are nested are nested as the shape is"),
    row("infer/fields/outputs/null infer/fields/parameters/null infer/fields/id/null", "status", 500, 200, "KServe's own data model writes null for what is absent"),
    row("generate/too-many-rows", "status", 400, 200, "more rows than a run takes go through it in parts, where no config.pbtxt limits requests"),
    row("infer/fields/id/long", "status", 200, None, "an id has at most 1,024 bytes"),
    row("infer/fields/output-twice grpc/infer/output-twice", "status", None, None, "an output asked for twice is a mistake"),
    row("infer/framing/header/*", "status", 200, None, "a length is a whole number and nothing else"),
    row("infer/classification/0", "status", 200, None, "no classes are no classification"),
    row("infer/classification/text", "status", "none", 400, "tritonserver ends when it is asked this"),
    row("infer/parameters/custom/* infer/parameters/headers/*", "status", 400, 200, "unknown parameters are the client's own business"),
    row("infer/parameters/triton_* grpc/infer/parameters/triton_*", "status", None, None, "names that begin with triton_ are reserved there"),
    row("infer/parameters/input/shared_memory_byte_size infer/parameters/output/shared_memory_byte_size", "status", 500, 200, "without a region it says nothing"),
    row("infer/parameters/*/shared_memory_region", "status", None, None, "shared memory is off unless it is asked for"),
    row("infer/coding/*/not-packed", "status", 200, None, "a body that says it is packed and is not is damaged"),
    row("infer/coding/*/nested", "status", 501, 400, "packed twice is refused"),
    row("infer/coding/zstd", "status", 501, 400, "zstd is understood, and this body is none"),
    row("infer/coding/ infer/coding/GZIP", "status", 501, 200, "names of codings have no case, and an empty one is none"),
    row("infer/coding/*", "status", 501, 415, "an unknown coding is an unsupported media type", "serin"),
    row("infer/numbers/FP16/*", "status", 400, 500, "FP16 can be written as JSON, but not so large", "tritonserver"),
    row("infer/fields/inputs/of-*", "status", 400, 500, "what is no object is no input: Triton counts it as one", "tritonserver"),
    row("infer/framing/header/long infer/framing/no-header", "status", 400, 500, "bytes behind the JSON, taken as JSON, are none", "tritonserver"),
    row("infer/datatypes/*", "status", 500, 400, "the datatype is looked at before the data", "tritonserver"),
    row("infer/coding/*/truncated", "status", 500, 400, "a body that is damaged is found out before it is read", "tritonserver"),
    row("infer/*", "status", 500, 400, "the client's fault is not the server's: a 500 would roll back a good model", "serin"),
    # REST: generate
    row("generate*/FP16/*", "status", 400, 200, "FP16 can be written as JSON, too"),
    row("generate/not-the-width", "words", None, None, "the shape that the values do not fill, and how many came"),
    row("generate/parameter/*", "words", None, None, "the field may be meant for an input: what inputs there are, what a parameter is"),
    row("generate/depth-101", "words", None, None, "how deep a request may be"),
    row("generate/depth-101", "status", 400, 500, "how deep a request may be is found out before what it holds", "tritonserver"),
    row("generate/values/nested generate/values/nested-ones generate/values/mixed", "status", None, None, "a value or a flat list, as its document says; Triton takes some others and flattens them"),
    row("generate/INT8/range", "status", 200, None, "what does not fit its datatype is refused with its index, not cut"),
    row("generate/body/not-utf8", "status", 200, None, "JSON is UTF-8"),
    row("generate/coding/gzip", "status", 400, 200, "bodies may be packed here, too"),
    row("generate/*", "status", 500, 400, "the client's fault is not the server's: a 500 would roll back a good model", "serin"),
    # REST: orders, and what else stands behind a version or a repository's name
    row("versioned/*", "status", None, 403, "orders are not taken at the ports of clients", "serin"),
    row("versioned/v2/repository/*/index", "status", 200, 404, "a repository is called as its folder is; Triton looks at no name"),
    # REST inference: answers
    row("infer/raw/BOOL/odd", "json", None, None, "a BOOL is 0 or 1, whatever byte it came as"),
    row("infer/json/simple/outputs-swapped", "json", None, None, "outputs come in the order asked for, here those of the Python backend in its own"),
    row("infer/binary/simple/but-one", "json", None, None, "binary_data_output is the default of all outputs, those that are named included"),
    row("infer/binary/simple/but-one", "type", None, None, "binary_data_output is the default of all outputs, those that are named included"),
    row("infer/body/nul", "json", None, None, "an id may hold a zero, and is not cut off there"),
    row("infer/body/not-utf8", "json", None, None, "JSON is UTF-8, and so are messages", "serin"),
    row("infer/body/not-utf8", "status", 400, 500, "JSON is UTF-8: Triton finds the name unknown, in an answer that is none either", "tritonserver"),
    row("infer/bytes/not-utf8", "json", None, None, "bytes that are no UTF-8 become the characters of their numbers, so that the answer is JSON"),
    # What is off
    row("grpc/RepositoryModel*", "status", "UNAVAILABLE", "PERMISSION_DENIED", "orders are not taken at the ports of clients", "serin"),
    row("grpc/RepositoryModel*", "status", "UNAVAILABLE", "FAILED_PRECONDITION", "the mode forbids it, and trying again will not help", "tritonserver"),
    row("grpc/RepositoryIndex/named", "status", "UNIMPLEMENTED", "NOT_FOUND", "there is one repository, and it has no name"),
    # Orders, where they are taken
    row("control/load/simple* control/unload/* control/memory/*/unregister", "json", None, None, "an order that was carried out is answered with {}, which is JSON"),
    row("control/ready/*", "json", None, None, "probes have a body: KServe's SDK reads it"),
    row("control/ready/*", "status", 400, None, "a model that is not there is not found, whatever is asked of it"),
    row("control/load/nope* grpc/control/load/*", "status", None, None, "what is not there is not found", "serin"),
    row("control/unload/nope grpc/control/unload/nope", "status", None, None, "there is nothing to take away", "serin"),
    row("control/load/simple/bad-config", "status", 500, 400, "the client's fault is not the server's: the config is what is wrong"),
    row("*control/load/*", "words", "failed to load *", None, "what is wrong: the place, or the config"),
    row("control/logging/log_format/*/'json'", "status", 503, 200, "lines for machines"),
    row("control/logging/log_format/*", "words", "invalid argument*", None, "which formats there are"),
    row("control/logging/log_format/*", "status", 503, 400, "what never was a format will be none tomorrow"),
    row("*control/logging/loud/* control/logging/array", "status", None, None, "what is not done is not answered as if it were"),
    row("control/logging/log_verbose_level/*/2147483648", "status", 200, 400, "what does not fit is refused, not made 0"),
    row("control/logging/empty", "status", 500, 200, "no body is no change"),
    row("control/logging/log_verbose_level/*/1.5", "status", 500, 400, "the client's fault is not the server's", "tritonserver"),
    row("*control/*", "words", "*file location can not be updated*", None, "which key, and why"),
    row("grpc/control/logging/*", "words", "expect *", None, "which values there are"),
    row("control/*", "status", 501, 403, "it is here, and nobody may", "serin"),
    row("grpc/control/*", "status", "UNIMPLEMENTED", "PERMISSION_DENIED", "it is here, and nobody may", "serin"),
    row("control/memory/register*", "status", 500, None, "the client's fault is not the server's", "serin"),
    row("grpc/control/memory/register*", "status", "INTERNAL", None, "the client's fault is not the server's", "serin"),
    row("control/*", "status", 500, 400, "the client's fault is not the server's", "serin"),
    # gRPC
    row("grpc/infer/version/* grpc/ModelMetadata/* grpc/ModelConfig/*", "status", None, "NOT_FOUND", "a version that is not there is not found; versions are named in one way"),
    row("grpc/ModelStatistics/*", "status", None, "NOT_FOUND", "a model or version that is not there is not found, whatever is asked of it"),
    row("grpc/ModelReady/*", "json", None, None, "models and versions are named in one way"),
    row("grpc/stream/bad-shape", "json", None, None, "errors name the tensor, what was expected, what came"),
    row("grpc/infer/shape/huge grpc/infer/shape/2^32", "status", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "a tensor that no machine holds is too large"),
    row("grpc/infer/contents/*/range", "status", "OK", "INVALID_ARGUMENT", "what does not fit its datatype is refused, not cut"),
    row("grpc/infer/two-raw", "status", "OK", "INVALID_ARGUMENT", "bytes without an input are a mistake"),
    row("grpc/infer/classification/1099511627776", "json", None, None, "more classes than there are is all of them; Triton's 32 bits make it none"),
    row("grpc/infer/parameters/*/int64_param/-1", "status", "OK", "INVALID_ARGUMENT", "there is no negative time and no negative sequence"),
    row("grpc/infer/parameters/*/uint64_param/*", "status", "INVALID_ARGUMENT", "OK", "the published InferParameter has uint64_param"),
]


def listed(name, aspect, triton, serin, dialect):
    return next((one for one in DIFFERENCES if dialect in one.dialects and one.fits(name, aspect, triton, serin)), None)
