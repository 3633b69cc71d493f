"""Tensors in memory that a client shares with the server (P24): what works, what is refused, and what a client cannot do with it."""

import mmap
import os
import uuid

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
import tritonclient.utils.shared_memory as shm
from conftest import MODELS, ON_FREE_PORTS, call
from test_serve import EVALUATION, expected_scores
from tritonclient.utils import InferenceServerException

PIXELS = EVALUATION["pixels"][:4]


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    from conftest import Process

    process = Process(tmp_path_factory.mktemp("shared"), "serve", MODELS, *ON_FREE_PORTS, "--shared-memory", "--admin-on-data-port")
    yield process
    assert process.end() == 0


@pytest.fixture
def key():
    name = f"/serin-test-{uuid.uuid4().hex}"
    yield name
    if os.path.exists(f"/dev/shm{name}"):
        os.unlink(f"/dev/shm{name}")


@pytest.fixture(params=["http", "grpc"])
def door(request, runtime):
    """(module, client) of tritonclient for each protocol."""
    module = triton_http if request.param == "http" else triton_grpc
    address = runtime.url.removeprefix("http://") if request.param == "http" else f"127.0.0.1:{runtime.ports['grpc']}"
    with module.InferenceServerClient(address) as client:
        yield module, client
        client.unregister_system_shared_memory()


def shared_input(module, size, offset=0):
    tensor = module.InferInput("pixels", list(PIXELS.shape), "FP32")
    tensor.set_shared_memory("region", size, offset=offset)
    return tensor


def test_inputs_and_outputs_in_shared_memory(door, key):
    module, client = door
    held = shm.create_shared_memory_region("region", key, 4096)
    try:
        shm.set_shared_memory_region(held, [PIXELS])
        client.register_system_shared_memory("region", key, 4096)
        wanted = module.InferRequestedOutput("scores")
        wanted.set_shared_memory("region", 160, offset=2048)
        result = client.infer("digits", [shared_input(module, PIXELS.nbytes)], outputs=[wanted], model_version="1")
        if module is triton_http:
            told = result.get_output("scores")
            assert told["parameters"] == {"shared_memory_region": "region", "shared_memory_byte_size": 160, "shared_memory_offset": 2048}
            assert "data" not in told, "nothing of it is in the answer"
        else:
            told = result.get_output("scores")
            assert told.parameters["shared_memory_region"].string_param == "region" and told.parameters["shared_memory_byte_size"].int64_param == 160
            assert list(result.get_response().raw_output_contents) == [b""]
        scores = shm.get_contents_as_numpy(held, np.float32, [4, 10], offset=2048)
        np.testing.assert_allclose(scores, expected_scores(1, PIXELS), rtol=1e-4, atol=1e-5)
        plain = client.infer("digits", [shared_input(module, PIXELS.nbytes)], model_version="1").as_numpy("scores")
        np.testing.assert_allclose(plain, expected_scores(1, PIXELS), rtol=1e-4, atol=1e-5)
    finally:
        shm.destroy_shared_memory_region(held)


def test_status_and_the_end_of_a_region(door, key):
    module, client = door
    held = shm.create_shared_memory_region("region", key, 2048)
    try:
        client.register_system_shared_memory("region", key, 1024, offset=512)
        status = client.get_system_shared_memory_status()
        (entry,) = status if module is triton_http else [
            {"name": r.name, "key": r.key, "offset": r.offset, "byte_size": r.byte_size} for r in status.regions.values()]  # fmt: skip
        assert entry == {"name": "region", "key": key, "offset": 512, "byte_size": 1024}
        with pytest.raises(InferenceServerException, match="already in manager"):
            client.register_system_shared_memory("region", key, 1024)
        client.unregister_system_shared_memory("region")
        client.unregister_system_shared_memory("region")  # once more is no mistake
        with pytest.raises(InferenceServerException, match="Unable to find"):
            client.infer("digits", [shared_input(module, PIXELS.nbytes)], model_version="1")
        with pytest.raises(InferenceServerException, match="Unable to find"):
            client.get_system_shared_memory_status("region")
        assert not (client.get_cuda_shared_memory_status() if module is triton_http else client.get_cuda_shared_memory_status().regions)
        with pytest.raises(InferenceServerException, match="CUDA"):
            client.register_cuda_shared_memory("region", b"\0" * 64, 0, 64)
    finally:
        shm.destroy_shared_memory_region(held)


def test_p24_what_no_client_may_register(door, key):
    _, client = door
    held = shm.create_shared_memory_region("region", key, 1024)
    try:
        for bad in ("../etc/passwd", "/../etc/passwd", "/dev/shm/x", "a/b", "..", "/", " ", "x" * 400):
            with pytest.raises(InferenceServerException, match="key"):
                client.register_system_shared_memory("bad", bad, 64)
        for offset, size in ((0, 1025), (1024, 1), (1 << 40, 1), (1, (1 << 63) - 1)):
            with pytest.raises(InferenceServerException, match="beyond its end"):
                client.register_system_shared_memory("bad", key, size, offset=offset)
        with pytest.raises(InferenceServerException) as error:
            client.register_system_shared_memory("bad", "/serin-there-is-none", 64)
        assert "serin-there-is-none" not in str(error.value), "a message names what the client called it, nothing of the machine"
    finally:
        shm.destroy_shared_memory_region(held)


def test_p24_ranges_are_checked_at_use(door, key):
    module, client = door
    held = shm.create_shared_memory_region("region", key, 2048)
    try:
        client.register_system_shared_memory("region", key, 1024)
        for size, offset, text in ((1024, 1, "Invalid offset"), (2048, 0, "Invalid offset"), (1020, 0, "byte size 1020"), (1024, 1 << 62, "Invalid offset")):
            with pytest.raises(InferenceServerException, match=text):
                client.infer("digits", [shared_input(module, size, offset)], model_version="1")
        wanted = module.InferRequestedOutput("scores")
        wanted.set_shared_memory("region", 100)
        with pytest.raises(InferenceServerException, match="at least 160 bytes"):
            client.infer("digits", [shared_input(module, PIXELS.nbytes)], outputs=[wanted], model_version="1")
        os.truncate(f"/dev/shm{key}", 512)  # whoever maps it would be killed now
        with pytest.raises(InferenceServerException, match="smaller than it was"):
            client.infer("digits", [shared_input(module, PIXELS.nbytes)], model_version="1")
        assert os.stat(f"/dev/shm{key}").st_size == 512, "nor does an output make it longer again"
        assert client.is_server_live()
    finally:
        os.truncate(f"/dev/shm{key}", 2048)
        shm.destroy_shared_memory_region(held)


def test_p24_a_region_that_ends_while_requests_use_it(runtime, key):
    """Who came before is answered, who comes after is refused; whatever is in the region then, it is no other's memory."""
    held = shm.create_shared_memory_region("region", key, 4096)
    seen = set()
    try:
        shm.set_shared_memory_region(held, [PIXELS])
        with triton_http.InferenceServerClient(runtime.url.removeprefix("http://"), concurrency=4) as client:
            wanted = triton_http.InferRequestedOutput("scores")
            wanted.set_shared_memory("region", 160, offset=2048)
            for _ in range(4):
                client.register_system_shared_memory("region", key, 4096)
                asked = [client.async_infer("digits", [shared_input(triton_http, PIXELS.nbytes)], outputs=[wanted], model_version="4") for _ in range(4)]
                client.unregister_system_shared_memory("region")
                for each in asked:
                    try:
                        seen.add(each.get_result().get_output("scores")["name"])
                    except InferenceServerException as error:
                        seen.add("refused" if "Unable to find" in str(error) else str(error))
    finally:
        shm.destroy_shared_memory_region(held)
    assert "scores" in seen and seen <= {"scores", "refused"}


def test_a_text_a_list_and_shared_memory_in_one_request(runtime, key, start, repository):
    from onnx import TensorProto, helper, save_model

    folder = repository({})
    nodes = [helper.make_node("Add", ["a", "b"], ["ab"]), helper.make_node("Add", ["ab", "c"], ["y"]), helper.make_node("Identity", ["t"], ["u"])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in "abc"]
    inputs.append(helper.make_tensor_value_info("t", TensorProto.STRING, ["n"]))
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2]), helper.make_tensor_value_info("u", TensorProto.STRING, ["n"])]
    (folder / "mixed/1").mkdir(parents=True)
    save_model(helper.make_model(helper.make_graph(nodes, "mixed", inputs, outputs), opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
               folder / "mixed/1/model.onnx")  # fmt: skip
    server = start("serve", folder, *ON_FREE_PORTS, "--shared-memory", "--admin-on-data-port")
    held = shm.create_shared_memory_region("region", key, 64)
    try:
        words = np.array([b"one", b"three"], dtype=object)
        packed = b"".join(len(word).to_bytes(4, "little") + word for word in words)
        shm.set_shared_memory_region(held, [np.array([[1, 2], [3, 4]], np.float32)])
        with open(f"/dev/shm{key}", "r+b") as file, mmap.mmap(file.fileno(), 64) as view:
            view[16 : 16 + len(packed)] = packed
        with triton_http.InferenceServerClient(server.url.removeprefix("http://")) as client:
            client.register_system_shared_memory("region", key, 64)
            tensors = [triton_http.InferInput(name, [2, 2], "FP32") for name in "abc"]
            tensors[0].set_shared_memory("region", 16)
            tensors[1].set_data_from_numpy(np.full([2, 2], 10, np.float32), binary_data=True)
            tensors[2].set_data_from_numpy(np.full([2, 2], 100, np.float32), binary_data=False)
            text = triton_http.InferInput("t", [2], "BYTES")
            text.set_shared_memory("region", len(packed), offset=16)
            result = client.infer("mixed", [*tensors, text])
            assert result.as_numpy("y").tolist() == [[111, 112], [113, 114]] and result.as_numpy("u").tolist() == words.tolist()
    finally:
        shm.destroy_shared_memory_region(held)


def test_without_being_asked_for_it_is_off(start):
    runtime = start("serve", MODELS, *ON_FREE_PORTS, "--admin-on-data-port")
    answer = call(f"{runtime.url}/v2/systemsharedmemory/region/r/register", {"key": "/x", "byte_size": 64})
    assert answer.status == 400 and "--shared-memory" in answer.error
    assert call(f"{runtime.url}/v2/systemsharedmemory/status").json == []
    body = {"inputs": [{"name": "pixels", "datatype": "FP32", "shape": [1, 64],
                        "parameters": {"shared_memory_region": "r", "shared_memory_byte_size": 256}}]}  # fmt: skip
    refused = call(f"{runtime.url}/v2/models/digits/versions/1/infer", body)
    assert refused.status == 400 and "--shared-memory" in refused.error
