"""Writes every fixture of tests/data: models with inputs and ONNX Runtime's answers to them, and the broken files under bad/.

    venv/bin/python tests/data/make_fixtures.py [--out DIR] [NAME...]     venv: deploy/requirements-models.txt, torch aside

Seeds are fixed: models and inputs are the same bytes in every run; the answers' last bits follow the CPU that ONNX Runtime ran on.
"""

import argparse
import pathlib

from recipes import attention, bad, control_flow, convolution, digits, elementwise, external, microsoft, recurrent, sequences

HERE = pathlib.Path(__file__).parent
RECIPES = {
    "attention": attention.write,
    "conv_bn": convolution.write,
    "control_flow": control_flow.write_if,
    "nonzero": control_flow.write_nonzero,
    "elementwise": elementwise.write,
    "mlp_external": external.write,
    "microsoft": microsoft.write,
    "recurrent": recurrent.write,
    "sequences": sequences.write,
    "bad": bad.write,
    "digits": digits.write,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=HERE)
    parser.add_argument("names", nargs="*", choices=[[], *RECIPES], default=[])
    arguments = parser.parse_args()
    for name in arguments.names or RECIPES:
        RECIPES[name](arguments.out)
    size = sum(file.stat().st_size for file in arguments.out.rglob("*") if file.is_file())
    print(f"{arguments.out}: {size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
