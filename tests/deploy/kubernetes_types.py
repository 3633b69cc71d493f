"""Reads documents as the types of Kubernetes' and KServe's clients have them, and prints what does not fit as a list in JSON: fields that there are none of, those
that are missing, values of another kind. Arguments: files. Run with .deps/clients in PYTHONPATH (tests/deploy/test_manifests.py does)."""

import json
import re
import sys

import yaml
from kserve import models as kserve_models
from kubernetes.client import models as kubernetes_models

SCALARS = {"str": str, "int": int, "bool": bool, "float": (int, float)}


def type_of(name):
    return getattr(kserve_models, name, None) or getattr(kubernetes_models, name, None)


def type_of_document(document):
    group, _, version = document["apiVersion"].rpartition("/")
    return type_of(version[0].upper() + version[1:] + document["kind"])


def problems(value, name, path):
    if of_all := re.fullmatch(r"list\[(.*)\]|dict\(str, (.*)\)", name):
        pairs = enumerate(value) if name.startswith("list") and isinstance(value, list) else value.items() if isinstance(value, dict) else None
        if pairs is None:
            return [f"{path}: is no {name}"]
        return [each for key, item in pairs for each in problems(item, of_all[1] or of_all[2], f"{path}.{key}")]
    if name == "object":  # a port by number or name, an amount
        return []
    if name in SCALARS:
        fits = isinstance(value, SCALARS[name]) and (name == "bool" or not isinstance(value, bool))
        return [] if fits else [f"{path}: {value!r} is no {name}"]
    known = type_of(name)
    if known is None:
        return [f"{path}: no type {name}"]
    return [] if known is dict else fields(value, known, path)


def fields(value, known, path):
    if not isinstance(value, dict):
        return [f"{path}: is no {known.__name__}"]
    attributes = {key: attribute for attribute, key in known.attribute_map.items()}
    found = [f"{path}: {known.__name__} has no '{key}'" for key in value if key not in attributes]
    found += [each for key, item in value.items() if key in attributes for each in problems(item, known.openapi_types[attributes[key]], f"{path}.{key}")]
    try:
        known(**{attributes[key]: item for key, item in value.items() if key in attributes})
    except ValueError as error:  # a required one is missing
        found.append(f"{path}: {error}")
    return found


def main():
    found = []
    for file in sys.argv[1:]:
        with open(file, encoding="utf-8") as text:
            for document in yaml.safe_load_all(text):
                known = type_of_document(document)
                found += fields(document, known, file) if known else [f"{file}: no kind {document['kind']} in {document['apiVersion']}"]
    print(json.dumps(found))


main()
