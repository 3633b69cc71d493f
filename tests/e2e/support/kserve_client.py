"""Asks a server as KServe's SDK does: `kserve_client.py HTTP_PORT GRPC_PORT` prints what each call came to, of each of its clients."""

import asyncio
import json
import sys

import grpc
import httpx
import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig
from kserve.protocol.infer_type import RequestedOutput
from kserve.protocol.rest.v2_datamodels import InferenceRequest

REST, GRPC = f"http://127.0.0.1:{sys.argv[1]}", f"127.0.0.1:{sys.argv[2]}"
PIXELS = np.arange(128, dtype=np.float32).reshape(2, 64) / 8


def request(binary, model="digits", array=PIXELS, outputs=None):
    tensor = InferInput("pixels", list(array.shape), "FP32")
    tensor.set_data_from_numpy(array, binary_data=binary)
    return InferRequest(model, [tensor], request_id="7", request_outputs=outputs)


def listed(response):
    return {"model": response.model_name, "id": response.id, "scores": response.outputs[0].as_numpy().tolist()}


async def outcome(call):
    try:
        return await call
    except httpx.HTTPStatusError as error:
        return [error.response.status_code, str(error)]
    except grpc.RpcError as error:
        return [error.code().name, error.details()]


async def over_rest_1():
    async with InferenceRESTClient(RESTConfig(protocol="v1")) as client:
        return {
            "live": await outcome(client.is_server_live(REST)),
            "model_ready": await outcome(client.is_model_ready(REST, "digits")),
            "infer": await outcome(client.infer(REST, {"instances": PIXELS.tolist()}, "digits")),
            "no_model": await outcome(client.infer(REST, {"instances": PIXELS.tolist()}, "nope")),
            "bad_shape": await outcome(client.infer(REST, {"instances": [[1.0]]}, "digits")),
            "explain": await outcome(client.explain(REST, "digits", {"instances": PIXELS.tolist()})),
        }


async def data_model():
    """What its own data model writes: null for whatever is absent."""
    tensor = {"name": "pixels", "shape": list(PIXELS.shape), "datatype": "FP32", "data": PIXELS.ravel().tolist()}
    body = InferenceRequest(inputs=[tensor]).model_dump_json()
    assert '"id":null' in body and '"outputs":null' in body
    async with httpx.AsyncClient() as client:
        answer = await client.post(f"{REST}/v2/models/digits/infer", content=body)
    return [answer.status_code, answer.json()["outputs"][0]["data"] if answer.is_success else answer.text]


async def over_rest_2():
    async with InferenceRESTClient(RESTConfig(protocol="v2")) as client:
        binary = [RequestedOutput("scores", {"binary_data": True})]
        return {
            "live": await client.is_server_live(REST),
            "ready": await client.is_server_ready(REST),
            "model_ready": await client.is_model_ready(REST, "digits"),
            "infer": listed(await client.infer(REST, request(False), "digits")),
            "data_model": await data_model(),
            "binary": listed(await client.infer(REST, request(True), "digits")),
            "binary_out": listed(await client.infer(REST, request(True, outputs=binary), "digits")),
            "no_model": await outcome(client.infer(REST, request(False, "nope"), "nope")),
            "no_model_ready": await outcome(client.is_model_ready(REST, "nope")),
            "bad_shape": await outcome(client.infer(REST, request(True, array=PIXELS[:, :3]), "digits")),
        }


async def over_grpc():
    async with InferenceGRPCClient(GRPC) as client:
        return {
            "live": await client.is_server_live(),
            "ready": await client.is_server_ready(),
            "model_ready": await client.is_model_ready("digits"),
            "infer": listed(await client.infer(request(False))),
            "binary": listed(await client.infer(request(True))),
            "no_model": await outcome(client.infer(request(True, "nope"))),
            "no_model_ready": await outcome(client.is_model_ready("nope")),
            "bad_shape": await outcome(client.infer(request(True, array=PIXELS[:, :3]))),
        }


async def main():
    print(json.dumps({"v1": await over_rest_1(), "v2": await over_rest_2(), "grpc": await over_grpc()}))


asyncio.run(main())
