"""What a training job does with MLflow's own client. Runs in .deps/mlflow:

    mlflow_models.py TRACKING-URI '[["onnx", NAME, model.onnx], ["folder", NAME, FOLDER]]'

onnx: mlflow.onnx.log_model, registered. folder: logged as it is, with its MLmodel, and registered. Prints the numbers of the versions as JSON.
"""

import json
import sys

import mlflow
import mlflow.onnx
import onnx


def log_onnx(name, path):
    info = mlflow.onnx.log_model(onnx.load(path), name="model", registered_model_name=name)
    return int(info.registered_model_version)


def log_folder(name, folder):
    client = mlflow.MlflowClient()
    with mlflow.start_run() as run:
        mlflow.log_artifacts(folder, "model")
    if not client.search_registered_models(f"name='{name}'"):
        client.create_registered_model(name)
    return int(client.create_model_version(name, f"{run.info.artifact_uri}/model", run.info.run_id).version)


mlflow.set_tracking_uri(sys.argv[1])
print(json.dumps([{"onnx": log_onnx, "folder": log_folder}[kind](name, path) for kind, name, path in json.loads(sys.argv[2])]))
