"""The models that the examples of Triton's own client library ask for, with the names, tensors and arithmetic that those expect."""

from onnx import TensorProto, helper, save_model

INT8, INT32, UINT64, TEXT = TensorProto.INT8, TensorProto.INT32, TensorProto.UINT64, TensorProto.STRING
CONTROLS = {
    "START": "int32_false_true: [ 0, 1 ]",
    "END": "int32_false_true: [ 0, 1 ]",
    "READY": "int32_false_true: [ 0, 1 ]",
    "CORRID": "data_type: TYPE_UINT64",
}
STATE = 'state [ { input_name: "SUM" output_name: "NEXT" data_type: TYPE_INT32 dims: [ 1 ] } ]'


def write(folder, name, nodes, inputs, outputs, config=""):
    """nodes: (operator, inputs, output, attributes); inputs, outputs: (name, type, size of a row)."""
    made = [helper.make_node(operator, taken.split(), [output], **attributes) for operator, taken, output, attributes in nodes]
    values = [[helper.make_tensor_value_info(tensor, kind, ["n", size]) for tensor, kind, size in side] for side in (inputs, outputs)]
    model = helper.make_model(helper.make_graph(made, name, *values), opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (folder / name / "1").mkdir(parents=True)
    save_model(model, folder / name / "1" / "model.onnx")
    (folder / name / "config.pbtxt").write_text(f'name: "{name}"\nplatform: "onnxruntime_onnx"\nmax_batch_size: 8\n{config}')


def write_sums(folder, name, kind):
    """OUTPUT0 is the sum and OUTPUT1 the difference of numbers, or of texts that are numbers."""
    nodes = [
        ("Cast", "INPUT0", "a", {"to": INT32}),
        ("Cast", "INPUT1", "b", {"to": INT32}),
        ("Add", "a b", "sum", {}),
        ("Sub", "a b", "difference", {}),
        ("Cast", "sum", "OUTPUT0", {"to": kind}),
        ("Cast", "difference", "OUTPUT1", {"to": kind}),
    ]
    write(folder, name, nodes, [("INPUT0", kind, 16), ("INPUT1", kind, 16)], [("OUTPUT0", kind, 16), ("OUTPUT1", kind, 16)])


def write_identity(folder, name, kind):
    write(folder, name, [("Identity", "INPUT0", "OUTPUT0", {})], [("INPUT0", kind, 16)], [("OUTPUT0", kind, 16)])


def write_sequences(folder, name, nodes, types, state="", **controls):
    """Of one number at a time, INPUT to OUTPUT. `types` of what the model reads beyond that; `controls` that are said otherwise."""
    told = [f'{{ name: "{each}" control [ {{ kind: CONTROL_SEQUENCE_{each} {controls.get(each, CONTROLS[each])} }} ] }}' for each in types if each in CONTROLS]
    config = f"sequence_batching {{ max_sequence_idle_microseconds: 5000000 control_input [ {', '.join(told)} ] {state} }}"
    outputs = [("OUTPUT", INT32, 1), *([("NEXT", INT32, 1)] if state else [])]
    write(folder, name, nodes, [("INPUT", INT32, 1), *((each, kind, 1) for each, kind in types.items())], outputs, config)


def write_all(folder):
    """Eight, as many as the example of model control counts over gRPC."""
    write_sums(folder, "simple", INT32)
    write_sums(folder, "simple_int8", INT8)
    write_sums(folder, "simple_string", TEXT)
    write_identity(folder, "simple_identity", TEXT)
    write_identity(folder, "custom_identity_int32", INT32)
    begun = [("Add", "INPUT START", "begun", {})]
    last = [("Cast", "CORRID", "number", {"to": INT32}), ("Mul", "number END", "own", {})]
    write_sequences(folder, "simple_sequence", [*begun, ("Mul", "begun READY", "OUTPUT", {})], {"START": INT32, "READY": INT32})
    write_sequences(folder, "simple_dyna_sequence", [*begun, *last, ("Add", "begun own", "all", {}), ("Mul", "all READY", "OUTPUT", {})],
                    {"START": INT32, "READY": INT32, "END": INT32, "CORRID": UINT64})  # fmt: skip
    write_sequences(folder, "simple_string_dyna_sequence", [("Add", "INPUT SUM", "NEXT", {}), *last, ("Add", "NEXT own", "OUTPUT", {})],
                    {"END": INT32, "CORRID": TEXT, "SUM": INT32}, STATE, CORRID="data_type: TYPE_STRING")  # fmt: skip
    return folder
