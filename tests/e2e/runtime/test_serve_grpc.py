"""The runtime over gRPC, as tritonclient, grpcio and whoever sends broken calls meet it."""

import concurrent.futures
import queue
import threading
import time

import grpc
import numpy as np
import onnx
import pytest
import tritonclient.grpc as triton
from google.protobuf import descriptor_pb2
from onnx import TensorProto, helper
from tritonclient.grpc import model_config_pb2, service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

from conftest import MODELS, call, wait_until
from grpc_backends import field, fields
from test_serve import DIGITS, EVALUATION, endless_loop, expected_scores

PIXELS = EVALUATION["pixels"][:5]


@pytest.fixture
def client(shared_runtime):
    with triton.InferenceServerClient(f"127.0.0.1:{shared_runtime.ports['grpc']}") as one:
        yield one


@pytest.fixture
def channel(shared_runtime):
    with grpc.insecure_channel(f"127.0.0.1:{shared_runtime.ports['grpc']}") as one:
        yield one


def pixels_input(pixels=PIXELS):
    tensor = triton.InferInput("pixels", list(pixels.shape), "FP32")
    tensor.set_data_from_numpy(pixels)
    return tensor


def request_for(pixels=PIXELS, **changes):
    request = service_pb2.ModelInferRequest(model_name="digits", model_version="1", **changes)
    request.inputs.add(name="pixels", datatype="FP32", shape=pixels.shape)
    return request


def ask(channel, method, message, metadata=(), timeout=30, compression=None):
    """One call whose message is bytes: the answer, or the RpcError."""
    call = channel.unary_unary(method, request_serializer=lambda raw: raw, response_deserializer=lambda raw: raw)
    return call(message, metadata=metadata, timeout=timeout, compression=compression)


def refused(channel, message, method="/inference.GRPCInferenceService/ModelInfer", **options):
    with pytest.raises(grpc.RpcError) as error:
        ask(channel, method, message, **options)
    return error.value.code(), error.value.details()


# --- what clients see ---------------------------------------------------------------------------------------------------------------


def test_health_metadata_and_index(client):
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("digits", "1")
    about = client.get_server_metadata()
    assert about.name == "serin" and "statistics" in about.extensions
    metadata = client.get_model_metadata("digits", "1")
    assert list(metadata.versions) == ["1", "2", "3", "4", "5"] and metadata.inputs[0].name == "pixels"
    assert list(metadata.inputs[0].shape) == [-1, 64] and metadata.inputs[0].datatype == "FP32"
    index = client.get_model_repository_index().models
    assert {(entry.name, entry.version, entry.state) for entry in index} == {("digits", str(v), "READY") for v in range(1, 6)}


def test_a_model_that_is_not_there_is_not_ready_yet(client):
    """`while not client.is_model_ready(name)` waits for it."""
    assert client.is_model_ready("nope") is False and client.is_model_ready("digits", "99") is False
    with pytest.raises(InferenceServerException, match="a version is a whole number") as wrong:
        client.is_model_ready("digits", "x")
    assert wrong.value.status() == "StatusCode.INVALID_ARGUMENT"


def test_tritonclient_infers(client):
    for outputs in (None, [triton.InferRequestedOutput("scores")]):
        result = client.infer("digits", [pixels_input()], model_version="1", outputs=outputs, request_id="a-1")
        np.testing.assert_allclose(result.as_numpy("scores"), expected_scores(1, PIXELS), rtol=1e-4, atol=1e-5)
        answer = result.get_response()
        assert (answer.model_name, answer.model_version, answer.id) == ("digits", "1", "a-1")
    best = client.infer("digits", [pixels_input()], model_version="1", outputs=[triton.InferRequestedOutput("scores", class_count=2)])
    assert [[int(text.split(b":")[1]) for text in row] for row in best.as_numpy("scores")] == [
        list(np.argsort(-row, kind="stable")[:2]) for row in expected_scores(1, PIXELS)]  # fmt: skip


def test_compressed_requests(client):
    for compression in ("gzip", "deflate"):
        result = client.infer("digits", [pixels_input()], model_version="1", compression_algorithm=compression)
        np.testing.assert_allclose(result.as_numpy("scores"), expected_scores(1, PIXELS), rtol=1e-4, atol=1e-5)


def test_many_calls_at_once(client):
    answers = queue.Queue()
    for row in range(64):
        client.async_infer("digits", [pixels_input(EVALUATION["pixels"][row : row + 1])], model_version="2", request_id=str(row),
                           callback=lambda result, error: answers.put((result, error)))  # fmt: skip
    expected = expected_scores(2, EVALUATION["pixels"][:64])
    for _ in range(64):
        result, error = answers.get(timeout=30)
        assert error is None
        np.testing.assert_allclose(result.as_numpy("scores")[0], expected[int(result.get_response().id)], rtol=1e-4, atol=1e-5)


def test_a_stream_of_inferences(client):
    answers = queue.Queue()
    client.start_stream(callback=lambda result, error: answers.put((result, error)))
    for row in range(300):  # more than are worked on at once
        client.async_stream_infer("digits", [pixels_input(EVALUATION["pixels"][row : row + 1])], model_version="1", request_id=str(row))
    expected = expected_scores(1, EVALUATION["pixels"][:300])
    seen = set()
    for _ in range(300):
        result, error = answers.get(timeout=30)
        assert error is None
        row = int(result.get_response().id)
        seen.add(row)
        np.testing.assert_allclose(result.as_numpy("scores")[0], expected[row], rtol=1e-4, atol=1e-5)
    assert seen == set(range(300))
    client.async_stream_infer("nope", [pixels_input()])  # a mistake is told, and the stream goes on
    assert "unknown model: 'nope'" in str(answers.get(timeout=30)[1])
    client.async_stream_infer("digits", [pixels_input()], model_version="1")
    assert answers.get(timeout=30)[1] is None
    client.stop_stream()


def test_a_stream_whose_client_wants_statuses(channel):
    infer = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelStreamInfer
    answers = infer(iter([service_pb2.ModelInferRequest(model_name="nope")]), metadata=[("triton_grpc_error", "true")])
    with pytest.raises(grpc.RpcError) as error:
        next(answers)
    assert error.value.code() == grpc.StatusCode.NOT_FOUND


def test_typed_contents_are_the_same_as_bytes(channel, serve, repository, tmp_path):
    kinds = {"FP32": (TensorProto.FLOAT, "fp32_contents", [1.5, -2]), "FP64": (TensorProto.DOUBLE, "fp64_contents", [1e-300, 2]),
             "INT8": (TensorProto.INT8, "int_contents", [-128, 127]), "INT16": (TensorProto.INT16, "int_contents", [-32768, 5]),
             "INT32": (TensorProto.INT32, "int_contents", [-7, 2**31 - 1]), "INT64": (TensorProto.INT64, "int64_contents", [-(2**63), 9]),
             "UINT8": (TensorProto.UINT8, "uint_contents", [0, 255]), "UINT16": (TensorProto.UINT16, "uint_contents", [1, 65535]),
             "UINT32": (TensorProto.UINT32, "uint_contents", [1, 2**32 - 1]), "UINT64": (TensorProto.UINT64, "uint64_contents", [1, 2**64 - 1]),
             "BOOL": (TensorProto.BOOL, "bool_contents", [True, False]), "BYTES": (TensorProto.STRING, "bytes_contents", [b"a\0b", b""])}  # fmt: skip
    for name, (kind, _, _) in kinds.items():
        ends = [helper.make_tensor_value_info(tensor, kind, ["n"]) for tensor in "xy"]
        graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], name, ends[:1], ends[1:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / f"{name}.onnx")
    runtime = serve(repository({f"{name}/1": tmp_path / f"{name}.onnx" for name in kinds}))
    with grpc.insecure_channel(f"127.0.0.1:{runtime.ports['grpc']}") as to:
        infer = service_pb2_grpc.GRPCInferenceServiceStub(to).ModelInfer
        for name, (_, contents, values) in kinds.items():
            request = service_pb2.ModelInferRequest(model_name=name)
            tensor = request.inputs.add(name="x", datatype=name, shape=[2])
            getattr(tensor.contents, contents).extend(values)
            typed = infer(request).raw_output_contents[0]
            del request.inputs[0].contents.__getattribute__(contents)[:]
            request.raw_input_contents.append(typed)
            assert infer(request).raw_output_contents[0] == typed, name
            assert len(typed) == (3 + 2 * 4 if name == "BYTES" else 2 * np.dtype(name.lower().replace("fp", "float")).itemsize), name
        request = service_pb2.ModelInferRequest(model_name="INT8")
        request.inputs.add(name="x", datatype="INT8", shape=[2]).contents.int_contents.extend([1, 128])
        with pytest.raises(grpc.RpcError, match="element 1 is 128, which is not an INT8"):
            infer(request)
        del request.inputs[0].contents.int_contents[:]
        request.inputs[0].contents.fp32_contents.append(1)
        with pytest.raises(grpc.RpcError, match="INT8 cannot come as 'fp32_contents'"):
            infer(request)


def test_answers_name_version_and_batch(channel):
    infer = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer
    request = request_for()
    request.raw_input_contents.append(PIXELS.tobytes())
    head = dict(infer.with_call(request)[1].initial_metadata())
    assert head["x-serin-version"] == "1" and head["x-serin-batch"].endswith("/0/1")


def test_statistics_count_what_was_answered(client):
    def counts():
        model = client.get_inference_statistics("digits", "3").model_stats[0]
        return model.inference_count, model.inference_stats.success.count, model.inference_stats.fail.count

    before = counts()
    client.infer("digits", [pixels_input()], model_version="3")
    with pytest.raises(triton.InferenceServerException):
        client.infer("digits", [pixels_input(PIXELS[:, :3])], model_version="3")
    inferences, good, bad = (after - earlier for after, earlier in zip(counts(), before))
    assert (inferences, good, bad) == (5, 1, 0), "a request that is wrong is no failure of the model"
    model = client.get_inference_statistics("digits", "3").model_stats[0]
    batches = {batch.batch_size: batch for batch in model.batch_stats}
    assert sum(rows * batch.compute_infer.count for rows, batch in batches.items()) == model.inference_count
    assert all(batch.compute_input.count == batch.compute_infer.count and batch.compute_infer.ns > 0 for batch in batches.values())
    assert [memory.type for memory in model.memory_usage] == ["CPU"] and model.memory_usage[0].byte_size > 0
    assert not model.response_stats
    assert client.get_inference_statistics("digits", "3").model_stats[0].last_inference / 1000 > time.time() - 60


# --- health and reflection ----------------------------------------------------------------------------------------------------------


def test_the_health_protocol(channel):
    def status(service):
        return ask(channel, "/grpc.health.v1.Health/Check", field(1, service) if service else b"")

    serving = b"\x08\x01"
    assert status("") == status("inference.GRPCInferenceService") == status("digits") == serving
    assert refused(channel, field(1, "nope"), "/grpc.health.v1.Health/Check")[0] == grpc.StatusCode.NOT_FOUND


def test_who_watches_health_sees_the_end(start, repository):
    runtime = start("serve", "--models", repository(DIGITS), "--port", 0, "--grpc-port", 0, "--metrics-port", 0, "--drain-seconds", 3)
    with grpc.insecure_channel(f"127.0.0.1:{runtime.ports['grpc']}") as to:
        watch = to.unary_stream("/grpc.health.v1.Health/Watch", request_serializer=lambda raw: raw, response_deserializer=lambda raw: raw)
        states = watch(b"", timeout=30)
        assert next(states) == b"\x08\x01"
        runtime.process.terminate()
        assert next(states) == b"\x08\x02"


def described_files(answer):
    """What reflection says of files, by name. (A FileDescriptorResponse has the form of a FileDescriptorSet.)"""
    files = {file.name: file for file in descriptor_pb2.FileDescriptorSet.FromString(fields(answer)[4]).file}
    assert all(set(file.dependency) <= set(files) for file in files.values())
    return files


def test_reflection_describes_what_is_served(channel):
    for version in ("v1", "v1alpha"):
        info = channel.stream_stream(f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
                                     request_serializer=lambda raw: raw, response_deserializer=lambda raw: raw)  # fmt: skip
        services, described, unknown = info(iter([field(7, ""), field(4, "inference.GRPCInferenceService"), field(4, "nothing.Such")]))
        assert b"inference.GRPCInferenceService" in fields(services)[6] and b"grpc.health.v1.Health" in fields(services)[6]
        file = described_files(described)["inference.proto"]
        assert {"ModelInfer", "ModelStreamInfer"} <= {method.name for method in file.service[0].method}
        assert b"nothing.Such" in fields(unknown)[7]


def test_the_published_stubs_fit_ours(channel):
    """Every message that reflection describes has fields of the same names, numbers and types as in the stubs that Triton publishes."""
    info = channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                                 request_serializer=lambda raw: raw, response_deserializer=lambda raw: raw)  # fmt: skip
    (described,) = info(iter([field(4, "inference.GRPCInferenceService")]))
    ours = described_files(described)

    def flat(messages, prefix=""):
        for message in messages:
            for entry in message.field:
                yield prefix + message.name, entry.name, entry.number, entry.type, entry.label
            yield from flat(message.nested_type, prefix + message.name + ".")

    newer = {("ModelMetadataResponse", "properties")}  # of the Open Inference Protocol; Triton has none
    for name, stubs in (("inference.proto", service_pb2), ("model_config.proto", model_config_pb2)):
        published = descriptor_pb2.FileDescriptorProto()
        stubs.DESCRIPTOR.CopyToProto(published)
        fields_of_ours = {entry for entry in flat(ours[name].message_type) if entry[:2] not in newer and "PropertiesEntry" not in entry[0]}
        published_fields = set(flat(published.message_type))
        assert fields_of_ours <= published_fields
        if name == "model_config.proto":  # a field that is not ours would fail a model, where its message is written as a list
            assert fields_of_ours == published_fields


# --- what goes wrong ----------------------------------------------------------------------------------------------------------------


def test_errors_say_what_is_wrong(channel):
    infer = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer
    invalid = grpc.StatusCode.INVALID_ARGUMENT

    def wrong(code, text, change):
        request = request_for()
        request.raw_input_contents.append(PIXELS.tobytes())
        change(request)
        with pytest.raises(grpc.RpcError) as error:
            infer(request, timeout=30)
        assert error.value.code() == code and text in error.value.details(), error.value

    wrong(grpc.StatusCode.NOT_FOUND, "unknown model: 'nope'", lambda r: setattr(r, "model_name", "nope"))
    wrong(grpc.StatusCode.NOT_FOUND, "'digits' version 99 is not found", lambda r: setattr(r, "model_version", "99"))
    wrong(invalid, "unexpected inference input 'pixel'", lambda r: setattr(r.inputs[0], "name", "pixel"))
    wrong(invalid, "data-type is 'INT32'", lambda r: setattr(r.inputs[0], "datatype", "INT32"))
    wrong(invalid, "the request has [5,63]", lambda r: r.inputs[0].shape.__setitem__(1, 63))
    wrong(invalid, "takes 1280 bytes, the request has 4", lambda r: r.raw_input_contents.__setitem__(0, b"1234"))
    wrong(invalid, "raw_input_contents has 2 tensors for 1 inputs", lambda r: r.raw_input_contents.append(b""))
    wrong(invalid, "contents field must not be specified when using raw_input_contents for 'pixels'", lambda r: r.inputs[0].contents.fp32_contents.append(1))
    wrong(invalid, "unexpected inference output 'nope'", lambda r: r.outputs.add(name="nope"))
    wrong(invalid, "input 'pixels' is missing", lambda r: (r.ClearField("inputs"), r.ClearField("raw_input_contents")))
    wrong(invalid, "contents has fewer", lambda r: (r.ClearField("raw_input_contents"), r.inputs[0].shape.__setitem__(0, 10**6)))


def test_calls_that_are_no_calls(channel):
    infer = "/inference.GRPCInferenceService/ModelInfer"
    assert refused(channel, b"\xff\xff\xff")[0] == grpc.StatusCode.INVALID_ARGUMENT
    assert refused(channel, b"", "/inference.GRPCInferenceService/Nonsense") == (
        grpc.StatusCode.UNIMPLEMENTED, "there is no method '/inference.GRPCInferenceService/Nonsense' here")  # fmt: skip
    many = channel.stream_unary(infer, request_serializer=lambda raw: raw, response_deserializer=lambda raw: raw)
    for messages, text in (([], "the call has no message"), ([b"", b""], "this method takes one message")):
        with pytest.raises(grpc.RpcError, match=text):
            many(iter(messages))
    assert refused(channel, request_for().SerializeToString(), compression=grpc.Compression.Gzip)[0] == grpc.StatusCode.INVALID_ARGUMENT


def test_a_message_over_the_limit(serve, repository):
    runtime = serve(repository({"digits/1": MODELS / "digits/1/model.onnx"}), "--max-body-bytes", 100_000)
    with grpc.insecure_channel(f"127.0.0.1:{runtime.ports['grpc']}") as to:
        for compression in (None, grpc.Compression.Gzip):  # small on its way, large once inflated
            code, text = refused(to, bytes(200_000), compression=compression)
            assert code == grpc.StatusCode.RESOURCE_EXHAUSTED and "100000" in text


def test_an_answer_is_as_long_as_it_has_to_be(serve, repository, tmp_path):
    """In one piece, and as one of a stream; a limit holds for answers that wait for one another only."""
    graph = helper.make_graph([helper.make_node("ConstantOfShape", ["size"], ["zeros"])], "g", [helper.make_tensor_value_info("size", TensorProto.INT64, [1])],
                              [helper.make_tensor_value_info("zeros", TensorProto.FLOAT, ["n"])])  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "zeros.onnx")
    runtime = serve(repository({"zeros/1": tmp_path / "zeros.onnx"}))
    numbers = 20_000_000
    request = service_pb2.ModelInferRequest(model_name="zeros", raw_input_contents=[np.int64(numbers).tobytes()])
    request.inputs.add(name="size", datatype="INT64", shape=[1])
    with grpc.insecure_channel(f"127.0.0.1:{runtime.ports['grpc']}", [("grpc.max_receive_message_length", -1)]) as to:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(to)
        assert len(stub.ModelInfer(request).raw_output_contents[0]) == 4 * numbers
        assert [len(answer.infer_response.raw_output_contents[0]) for answer in stub.ModelStreamInfer(iter([request]))] == [4 * numbers]


def test_a_deadline_and_a_client_that_hangs_up_free_the_model(serve, repository, tmp_path):
    endless_loop(tmp_path / "count.onnx")
    runtime = serve(repository({"count/1": tmp_path / "count.onnx"}), "--threads", 1)
    with grpc.insecure_channel(f"127.0.0.1:{runtime.ports['grpc']}") as to:
        infer = service_pb2_grpc.GRPCInferenceServiceStub(to).ModelInfer

        def turns(count):
            request = service_pb2.ModelInferRequest(model_name="count", raw_input_contents=[np.int64(count).tobytes()])
            request.inputs.add(name="trips", datatype="INT64", shape=[])
            return request

        with pytest.raises(grpc.RpcError) as error:
            infer(turns(900_000_000), timeout=0.3)
        assert error.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        running, queued = infer.future(turns(900_000_000)), infer.future(turns(900_000_001))
        wait_until(lambda: runtime.metric("nv_inference_pending_request_count", model="count") == 1, 10, "one runs and one waits")
        running.cancel()
        queued.cancel()
        assert np.frombuffer(infer(turns(3), timeout=60).raw_output_contents[0], np.int64) == [3]


def test_the_end_of_the_server_loses_no_call(start, repository):
    runtime = start("serve", "--models", repository(DIGITS), "--port", 0, "--grpc-port", 0, "--metrics-port", 0, "--drain-seconds", 0.5)
    target, stop, failures, done = f"127.0.0.1:{runtime.ports['grpc']}", threading.Event(), [], []
    request = request_for()
    request.raw_input_contents.append(PIXELS.tobytes())

    def ask_on():
        with grpc.insecure_channel(target) as to:
            infer = service_pb2_grpc.GRPCInferenceServiceStub(to).ModelInfer
            while not stop.is_set():
                try:
                    infer(request, timeout=10)
                    done.append(1)
                except grpc.RpcError as error:
                    if runtime.process.poll() is None and error.code() != grpc.StatusCode.UNAVAILABLE:
                        failures.append(error)
                    return

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        askers = [pool.submit(ask_on) for _ in range(4)]
        while len(done) < 50:
            time.sleep(0.01)
        runtime.process.terminate()
        assert runtime.process.wait(30) == 0
        stop.set()
        for asker in askers:
            asker.result()
    assert failures == []


def test_other_requests_on_the_grpc_port(shared_runtime):
    assert call(f"http://127.0.0.1:{shared_runtime.ports['grpc']}/v2").status == 415
