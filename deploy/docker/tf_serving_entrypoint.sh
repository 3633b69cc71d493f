#!/bin/sh
# What the image of TensorFlow Serving starts: $MODEL_NAME in $MODEL_BASE_PATH, or what flags say. The program reads both variables itself, and with either of
# them opens port 8501 as well; called directly it is without them, as the original is.
export MODEL_NAME="${MODEL_NAME:-model}"
exec /usr/bin/tensorflow_model_server "$@"
