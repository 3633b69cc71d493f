"""The server without a framework for models: FastAPI in each of uvicorn's workers. SERVICES_FOLDER has model.onnx and labels.txt."""

import os
import pathlib

import fastapi

import services_code as code

FOLDER = pathlib.Path(os.environ["SERVICES_FOLDER"])
LABELS = (FOLDER / "labels.txt").read_text().splitlines()
SESSION = code.session_of(FOLDER / "model.onnx")

app = fastapi.FastAPI()


@app.post("/classify")
async def classify(request: fastapi.Request):
    """Computes on the loop's thread: a worker has one core, and handing the work to another thread would only cost time."""
    tensor = code.tensor_of(await request.body())
    best, probabilities = code.best_of(code.scores_of(SESSION, tensor[None]))
    return fastapi.responses.JSONResponse({"label": [LABELS[index] for index in best[0]], "score": probabilities[0].tolist()})
