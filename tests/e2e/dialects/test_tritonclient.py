"""What the examples of Triton's own client library do, against `serin serve --as tritonserver` and the models that they ask for."""

import asyncio
import concurrent.futures
import queue
import uuid

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.grpc.aio as triton_grpc_aio
import tritonclient.http as triton_http
import tritonclient.http.aio as triton_http_aio
import tritonclient.utils.shared_memory as shm
from conftest import Process
from triton_models import write_all
from tritonclient.utils import InferenceServerException, serialize_byte_tensor

ANY_PORTS = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]
NUMBERS, ONES = np.arange(16, dtype=np.int32).reshape(1, 16), np.ones([1, 16], np.int32)
VALUES = [11, 7, 5, 3, 2, 0, 1]


def as_tritonserver(folder, *flags):
    models = write_all(folder / "models")
    return Process(folder, "serve", "--as", "tritonserver", f"--model-repository={models}", *ANY_PORTS, *flags)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    process = as_tritonserver(tmp_path_factory.mktemp("triton"))
    yield process
    assert process.end() == 0


def address(process, module):
    return f"127.0.0.1:{process.ports['http' if module in (triton_http, triton_http_aio) else 'grpc']}"


@pytest.fixture(params=[triton_http, triton_grpc], ids=["http", "grpc"])
def door(request, server):
    """(module, client) of tritonclient for each protocol."""
    with request.param.InferenceServerClient(address(server, request.param)) as client:
        yield request.param, client


def given(module, name, array, datatype="INT32"):
    tensor = module.InferInput(name, list(array.shape), datatype)
    tensor.set_data_from_numpy(array)
    return tensor


def pair(module, first=NUMBERS, second=ONES, datatype="INT32"):
    return [given(module, "INPUT0", first, datatype), given(module, "INPUT1", second, datatype)]


def texts(array):
    return np.array([str(value).encode() for value in array.flat], dtype=object).reshape(array.shape)


def sums_to(result, first=NUMBERS, second=ONES):
    assert (result.as_numpy("OUTPUT0").astype(np.int64) == first + second).all() and (result.as_numpy("OUTPUT1").astype(np.int64) == first - second).all()


def test_numbers_bytes_and_texts(door):
    module, client = door
    sums_to(client.infer("simple", pair(module)))
    sums_to(client.infer("simple", pair(module), outputs=[module.InferRequestedOutput("OUTPUT1"), module.InferRequestedOutput("OUTPUT0")]))
    sums_to(client.infer("simple_int8", pair(module, NUMBERS.astype(np.int8), ONES.astype(np.int8), "INT8")))
    sums_to(client.infer("simple_string", pair(module, texts(NUMBERS), texts(ONES), "BYTES")))
    for words in (np.array([b"", *[b"x\0" * n for n in range(15)]], dtype=object), np.array(["héllo"] * 16, dtype=object)):
        answer = client.infer("simple_identity", [given(module, "INPUT0", words.reshape(1, 16), "BYTES")]).as_numpy("OUTPUT0")
        assert [each.decode() for each in answer.flat] == [each.decode() if isinstance(each, bytes) else each for each in words]


@pytest.mark.parametrize("module", [triton_http_aio, triton_grpc_aio], ids=["http", "grpc"])
def test_the_clients_of_asyncio(server, module):
    async def together():
        async with module.InferenceServerClient(address(server, module)) as client:
            for result in await asyncio.gather(*(client.infer("simple", pair(module)) for _ in range(4))):
                sums_to(result)
            with pytest.raises(InferenceServerException, match="^(\\[.*\\] )?Request for unknown model"):
                await client.infer("wrong_model_name", pair(module))

    with concurrent.futures.ThreadPoolExecutor(1) as thread:  # tests of browsers leave a loop running in this one
        thread.submit(asyncio.run, together()).result()


def test_texts_in_shared_memory(door):
    module, client = door
    wanted = {"OUTPUT0": texts(NUMBERS + ONES), "OUTPUT1": texts(NUMBERS - ONES)}
    tensors = {"INPUT0": texts(NUMBERS), "INPUT1": texts(ONES), **wanted}
    held = {}
    try:
        inputs, outputs = [], []
        for name, array in tensors.items():
            packed = serialize_byte_tensor(array)
            size = len(packed.item())
            held[name] = shm.create_shared_memory_region(name, f"/serin-{uuid.uuid4().hex}", size)
            client.register_system_shared_memory(name, held[name]._shm_key, size)
            if name in wanted:
                outputs.append(module.InferRequestedOutput(name))
            else:
                shm.set_shared_memory_region(held[name], [packed])
                inputs.append(module.InferInput(name, [1, 16], "BYTES"))
            (outputs or inputs)[-1].set_shared_memory(name, size)
        client.infer("simple_string", inputs, outputs=outputs)
        for name, array in wanted.items():
            assert (shm.get_contents_as_numpy(held[name], np.object_, [1, 16]) == array).all()
    finally:
        client.unregister_system_shared_memory()
        for region in held.values():
            shm.destroy_shared_memory_region(region)


def places(values):
    return [(value, {"sequence_start": i == 0, "sequence_end": i == len(values) - 1}) for i, value in enumerate(values)]


SEQUENCES = [  # what is sent, what each of the three models answers; `own` is the sequence's number
    ("simple_sequence", [0, *VALUES], lambda own: [1, *VALUES]),
    ("simple_sequence", [100, *(-v for v in VALUES)], lambda own: [101, *(-v for v in VALUES)]),
    ("simple_dyna_sequence", [0, *VALUES], lambda own: [1, *VALUES[:-1], VALUES[-1] + own]),
    ("simple_string_dyna_sequence", [20, *VALUES], lambda own: [20, 31, 38, 43, 46, 48, 48, 49 + own]),
]


@pytest.mark.parametrize(("model", "sent", "expected"), SEQUENCES)
def test_sequences_one_request_after_the_other(door, model, sent, expected):
    module, client = door
    for own in (1000, "1002") if model != "simple_dyna_sequence" else (1000,):
        answers = []
        for value, place in places(sent):
            result = client.infer(model, [given(module, "INPUT", np.array([[value]], np.int32))], sequence_id=own, **place)
            answers.append(int(result.as_numpy("OUTPUT").item()))
        assert answers == expected(int(own))


def test_sequences_at_once_in_one_stream(server):
    answers = queue.Queue()
    expected = {}
    with triton_grpc.InferenceServerClient(address(server, triton_grpc)) as client:
        client.start_stream(lambda result, error: answers.put(error or result))
        for number, (model, sent, answer) in enumerate(SEQUENCES, start=1):
            expected[str(number)] = answer(number)
            for value, place in places(sent):
                tensors = [given(triton_grpc, "INPUT", np.array([[value]], np.int32))]
                client.async_stream_infer(model, tensors, request_id=str(number), sequence_id=number, **place)
        got = {number: [] for number in expected}
        for _ in range(sum(map(len, expected.values()))):
            answer = answers.get(timeout=20)
            assert not isinstance(answer, InferenceServerException), answer
            got[answer.get_response().id].append(int(answer.as_numpy("OUTPUT").item()))
    assert got == expected


@pytest.mark.parametrize("module", [triton_http, triton_grpc], ids=["http", "grpc"])
def test_models_loaded_and_let_go(tmp_path, module):
    with as_tritonserver(tmp_path, "--model-control-mode=explicit") as process, module.InferenceServerClient(address(process, module)) as client:
        index = client.get_model_repository_index()
        assert len(index if module is triton_http else index.models) == 8
        client.load_model("simple")
        with pytest.raises(InferenceServerException, match="failed to load"):
            client.load_model("simple", config='"parameters": {{"max_batch_size": "16"}}')
        client.load_model("simple", config='{"max_batch_size":"16"}')  # a number as a text, which JSON for protobuf allows
        config = client.get_model_config("simple")
        assert (config["max_batch_size"] if module is triton_http else config.config.max_batch_size) == 16
        sums_to(client.infer("simple", pair(module)))
        client.unload_model("simple")
        assert not client.is_model_ready("simple")
        with pytest.raises(InferenceServerException, match="failed to poll from model repository: .*name too long"):
            client.load_model("simple", config="{}", files={"file:" + "A" * 256: b"a"})
        with pytest.raises(InferenceServerException, match="failed to load"):
            client.load_model("wrong_model_name")
        assert client.is_server_live()


def test_words_that_the_examples_look_for(door):
    module, client = door
    with pytest.raises(InferenceServerException, match="Request for unknown model"):
        client.get_model_metadata("wrong_model_name")
    for version in ("wrong_specification", "0", "-1", "1" * 30):
        with pytest.raises(InferenceServerException, match=f"failed to get model version from specified version string '{version}'") as error:
            client.infer("simple", pair(module), model_version=version)
        assert error.value.status() in ("404", "StatusCode.NOT_FOUND")
    with pytest.raises(InferenceServerException, match="failed to get model version"):
        client.get_model_metadata("simple", "wrong")
