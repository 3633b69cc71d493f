"""Flags of other servers that keep callers out, and that none of them is unknown: a manifest that names one of them must go on working."""

import functools
import queue
import shutil
import time

import grpc
import numpy
import pytest
import tritonclient.grpc
import tritonclient.http
from certificates import Authority
from conftest import MODELS, call, free_port, infer_body, serin
from tritonclient.utils import InferenceServerException

PIXELS = infer_body([[0.0] * 64])
PORTS = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]
TENSORFLOW = ["serve", "--as", "tensorflow_model_server", "--model_name=digits", f"--model_base_path={MODELS / 'digits'}", "--port=0"]

# As the usage of each server lists them, with the values that manifests give them. Those that models and ports are named with are in the other tests.
OF_TRITON = """--id=a --exit-timeout-secs=30 --exit-on-error=true --disable-auto-complete-config --strict-model-config=false --strict-readiness=true
    --allow-http=true --http-header-forward-pattern=x.* --reuse-http-port=true --http-address=0.0.0.0 --http-thread-count=8 --http-max-input-size=134217728
    --http-restricted-api=logging:a=b --allow-grpc=true --reuse-grpc-port=false --grpc-address=0.0.0.0 --grpc-header-forward-pattern=x.*
    --grpc-infer-thread-count=2 --grpc-infer-allocation-pool-size=8 --grpc-max-response-pool-size=8 --grpc-use-ssl=false --grpc-use-ssl-mutual=false
    --grpc-infer-response-compression-level=none --grpc-keepalive-time=7200000 --grpc-keepalive-timeout=20000 --grpc-keepalive-permit-without-calls=false
    --grpc-http2-max-pings-without-data=2 --grpc-http2-min-recv-ping-interval-without-data=300000 --grpc-http2-max-ping-strikes=2
    --grpc-max-connection-age=1000 --grpc-max-connection-age-grace=1000 --grpc-restricted-protocol=logging:a=b --allow-sagemaker=false --sagemaker-port=8080
    --sagemaker-safe-port-range=1-2 --sagemaker-thread-count=8 --allow-vertex-ai=false --vertex-ai-port=8080 --vertex-ai-thread-count=8
    --vertex-ai-default-model=digits --allow-metrics=true --allow-gpu-metrics=true --allow-cpu-metrics=true --metrics-address=0.0.0.0
    --metrics-interval-ms=2000 --metrics-config=summary_latencies=false --trace-level=OFF --trace-rate=1000 --trace-count=-1 --trace-log-frequency=0
    --trace-config=rate=1000 --model-control-mode=poll --repository-poll-secs=0 --model-config-name=h100 --rate-limit=off --rate-limit-resource=R1:4:0
    --pinned-memory-pool-byte-size=268435456 --cuda-memory-pool-byte-size=0:67108864 --cuda-virtual-address-size=0:1073741824
    --response-cache-byte-size=0 --cache-config=local,size=1048576 --cache-directory=/opt --min-supported-compute-capability=6.0 --backend-directory=/opt
    --repoagent-directory=/opt --buffer-manager-thread-count=0 --model-load-thread-count=4 --model-load-retry-count=0 --backend-config=onnxruntime,a=b
    --host-policy=gpu_0,numa-node=0 --model-load-gpu-limit=0:0.5 --model-namespacing=false --enable-peer-access=true --allow-client-shm=true
    --log-file= --log-verbose=0 --log-info=true --log-warning=true --log-error=true --log-format=default"""
OF_TENSORFLOW = """--grpc_socket_path= --rest_api_num_threads=4 --rest_api_timeout_in_ms=30000 --rest_api_enable_cors_support=false --enable_batching=true
    --allow_version_labels_for_unavailable_models=false --batching_parameters_file=/config/batching.txt --enable_per_model_batching_parameters=true
    --model_config_file_poll_wait_seconds=0 --num_load_threads=0 --num_unload_threads=0 --max_num_load_retries=5 --load_retry_interval_micros=60000000
    --file_system_poll_wait_seconds=1 --flush_filesystem_caches=true --tensorflow_session_parallelism=0 --tensorflow_session_config_file=
    --tensorflow_intra_op_parallelism=0 --tensorflow_inter_op_parallelism=0 --use_alts_credentials=false --ssl_config_file= --platform_config_file=
    --per_process_gpu_memory_fraction=0 --saved_model_tags=serve --grpc_channel_arguments=grpc.max_connection_age_ms=2000 --grpc_max_threads=4
    --enable_model_warmup=true --num_request_iterations_for_warmup=0 --remove_unused_fields_from_bundle_metagraph=true --prefer_tflite_model=false
    --num_tflite_pools=1 --num_tflite_interpreters_per_pool=1 --enable_signature_method_name_check=false --xla_cpu_compilation_enabled=false
    --xla_gpu_compilation_enabled=false --enable_profiler=true --thread_pool_factory_config_file= --mixed_precision= --skip_initialize_tpu=false
    --enable_grpc_healthcheck_service=false --enable_serialization_as_tensor_content=false"""
OF_OPENVINO = """--grpc_bind_address=0.0.0.0 --rest_bind_address=0.0.0.0 --grpc_workers=1 --rest_workers=4 --log_level=INFO --log_path= --trace_path=/tmp/t
    --grpc_channel_arguments= --file_system_poll_wait_seconds=1 --sequence_cleaner_poll_wait_minutes=5 --custom_node_resources_cleaner_interval_seconds=1
    --cpu_extension=/a.so --cache_dir=/opt/cache --metrics_enable --metrics_list=ovms_streams,ovms_responses --grpc_max_threads=8 --grpc_memory_quota=1000 --allow_credentials=false
    --allowed_origins=* --allowed_methods=* --allowed_headers=* --api_key_file= --batch_size=auto --shape=auto --layout=NCHW --mean=0 --scale=1
    --color_format=BGR --model_version_policy={"all":{}} --nireq=1 --target_device=CPU --plugin_config={} --stateful=false --idle_sequence_cleanup=true
    --low_latency_transformation=false --max_sequence_number=500 --verbose_response=false --allowed_local_media_path=/tmp --allowed_media_domains=a"""


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Arguments of a tritonserver with one model, digits."""
    models = tmp_path_factory.mktemp("models")
    (models / "digits/1").mkdir(parents=True)
    shutil.copy(MODELS / "digits/1/model.onnx", models / "digits/1")
    return ["serve", "--as", "tritonserver", f"--model-repository={models}", *PORTS]


@pytest.fixture
def triton(start, digits):
    """triton(flag...): such a server, ready."""
    return lambda *flags: start(*digits, *flags)


@pytest.mark.parametrize("arguments, flags", [
    (["serve", "--as=tritonserver", f"--model-repository={MODELS}", *PORTS], OF_TRITON), (TENSORFLOW, OF_TENSORFLOW),
    (["serve", "--as=ovms", "--model_name=digits", f"--model_path={MODELS / 'digits'}", "--port=0", "--rest_port=1"], OF_OPENVINO)], ids=lambda of: of[0][:8])
def test_no_flag_of_the_original_is_unknown(arguments, flags):
    done = serin(*arguments, "--check", *flags.split(), timeout=60)
    assert done.returncode == 0 and "model 'digits' version 5: ready" in done.stdout, done.stderr


@pytest.mark.parametrize("name", ["tensorflow_model_server", "ovms", "tritonserver"])
def test_versions_are_asked_for(name):
    done = serin("serve", f"--as={name}", "--version")
    assert done.returncode == 0 and done.stdout.startswith(f"{name}: serin ")


def test_shared_memory_is_not_taken_where_it_is_not_allowed(triton):
    server = triton("--allow-client-shm=false")
    client = tritonclient.http.InferenceServerClient(f"127.0.0.1:{server.ports['http']}")
    with pytest.raises(InferenceServerException):
        client.register_system_shared_memory("region", "/nothing", 64)
    client.close()


# --- connections that have an age -----------------------------------------------------------------------------------------------------
TENSORFLOW_AGE = [*TENSORFLOW, f"--port={free_port()}", "--grpc_channel_arguments=grpc.max_connection_age_ms=200,grpc.max_send_message_length=-1"]


@pytest.mark.parametrize("arguments", [
    ["serve", "--as", "tritonserver", f"--model-repository={MODELS}", *PORTS, "--grpc-max-connection-age=200", "--grpc-max-connection-age-grace=60000"],
    TENSORFLOW_AGE, ["serve", str(MODELS), "--port=0", "--grpc-port=0", "--metrics-port=0", "--grpc-max-connection-age-seconds=0.2"]],
    ids=["triton", "tfserving", "serin"])
def test_clients_come_again_where_their_connection_is_old_and_lose_nothing(start, arguments):
    server = start(*arguments)
    with grpc.insecure_channel(f"127.0.0.1:{server.ports['grpc']}") as channel:
        connected = []
        channel.subscribe(lambda state: connected.append(state) if state is grpc.ChannelConnectivity.READY else None)
        health = channel.unary_unary("/grpc.health.v1.Health/Check")
        while len(connected) < 3:
            assert health(b"", timeout=30, wait_for_ready=True) == b"\x08\x01"


def test_a_stream_outlives_the_age_of_its_connection(triton):
    server = triton("--grpc-max-connection-age=100")
    client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{server.ports['grpc']}")
    answers = queue.Queue()
    client.start_stream(lambda result, error: answers.put(error or result.get_output("scores").shape))
    pixels = tritonclient.grpc.InferInput("pixels", [1, 64], "FP32")
    pixels.set_data_from_numpy(numpy.zeros((1, 64), numpy.float32))
    begun = time.monotonic()
    while time.monotonic() < begun + 2:  # a second behind its age it is told that nothing more is taken
        client.async_stream_infer("digits", [pixels])
        assert list(answers.get(timeout=30)) == [1, 10]
    client.stop_stream()
    client.close()


@pytest.mark.parametrize("argument", ["grpc.max_connection_age_ms", "grpc.max_connection_age_ms=soon", "grpc.max_connection_age_grace_ms=-1"])
def test_an_age_that_is_none_is_refused(argument):
    done = serin(*TENSORFLOW, "--check", f"--grpc_channel_arguments={argument}")
    assert done.returncode == 2 and argument in done.stderr


# --- calls that ask for a header ------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def restricted(start_once, digits):
    return start_once(*digits, "--http-restricted-api=model-repository,logging:admin-key=secret=1", "--http-restricted-api=inference:infer-key=more",
                      "--grpc-restricted-protocol=inference,metadata,shared-memory:infer-key=more", "--grpc-restricted-protocol=health:h=p")


@pytest.fixture(scope="module")
def restricted_to(start_once, digits):
    """restricted_to("health"): a server that asks for a header for the calls of one group."""
    return functools.cache(lambda group: start_once(*digits, f"--http-restricted-api={group}:key=value"))


@pytest.mark.parametrize("path, body, key", [
    ("/v2/repository/index", {}, "admin-key"), ("/v2/repository/models/digits/load", {}, "admin-key"), ("/v2/logging", None, "admin-key"),
    ("/v2/models/digits/infer", PIXELS, "infer-key"), ("/v2/models/digits/versions/1/infer", PIXELS, "infer-key"),
    ("/v1/models/digits:predict", {"instances": [[0.0] * 64]}, "infer-key"), ("/digits/prediction", {}, "infer-key")])
def test_who_does_not_send_the_header_may_not_call(restricted, path, body, key):
    for headers in ({}, {key: "secret"}, {key: "secret=12"}, {"triton-grpc-protocol-" + key: "more"}):
        answer = call(restricted.url + path, body, headers)
        assert answer.status == 403 and answer.error == f"This API is restricted, expecting header '{key}'"
    assert call(restricted.url + path, body, {key: "secret=1" if key == "admin-key" else "more"}).status != 403


def test_other_calls_ask_for_nothing(restricted):
    for path in ("/v2", "/v2/health/ready", "/v2/models/digits", "/v2/models/digits/ready", "/v2/models/digits/config", "/v2/models/digits/stats",
                 "/v2/trace/setting", "/v2/systemsharedmemory/status"):
        assert call(restricted.url + path).status == 200, path


@pytest.mark.parametrize("group, path", [("health", "/v2/health/live"), ("health", "/v2/models/digits/ready"), ("metadata", "/v2/models/digits"),
                                         ("metadata", "/v2"), ("metadata", "/v1/models/digits"), ("model-config", "/v2/models/digits/config"),
                                         ("statistics", "/v2/models/stats"), ("statistics", "/v2/models/digits/versions/1/stats"),
                                         ("trace", "/v2/trace/setting"),
                                         ("trace", "/v2/models/digits/trace/setting"), ("shared-memory", "/v2/cudasharedmemory/status")])
def test_each_group_has_its_calls(restricted_to, group, path):
    url = restricted_to(group).url
    assert call(url + path).status == 403 and call(url + path, headers={"KEY": "value"}).status == 200
    others = {"/v2/health/ready", "/v2/models/digits", "/v2/models/digits/config", "/v2/models/digits/stats", "/v2/logging"}
    assert sum(call(url + other).status == 200 for other in others) >= 4


@pytest.mark.parametrize("path", ["/v2/models/digits/config//", "/v2/models/digits//config", "/v2/models/digits/versions/1/config//", "//v2/models/digits/config"])
def test_no_path_is_read_in_two_ways(restricted_to, path):
    url = restricted_to("model-config").url
    assert call(url + "/v2/models/digits/config/").status == 403
    for headers in ({}, {"key": "value"}):
        assert call(url + path, headers=headers).status == 404


@pytest.mark.parametrize("flag", ["--http-restricted-api=", "--grpc-restricted-protocol=", "--tokens=", "--tls-client-ca=", "--http-restricted-api=inference: key=value"])
def test_what_keeps_callers_out_must_say_whom(flag):
    done = serin("serve", "--as", "tritonserver", "--model-repository", MODELS, "--http-port=0", "--grpc-port=0", "--metrics-port=0", flag)
    assert done.returncode == 2 and flag.split("=")[0] in done.stderr, done.stderr


def test_grpc_has_headers_of_its_own(restricted):
    client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{restricted.ports['grpc']}")
    pixels = tritonclient.grpc.InferInput("pixels", [1, 64], "FP32")
    pixels.set_data_from_numpy(numpy.zeros((1, 64), "float32"))
    key = {"triton-grpc-protocol-infer-key": "more"}
    for ask in (lambda **more: client.infer("digits", [pixels], **more), lambda **more: client.get_model_metadata("digits", **more),
                client.get_system_shared_memory_status, lambda **more: client.is_server_live(**more)):
        with pytest.raises(InferenceServerException) as refused:
            ask(headers={"infer-key": "more"})
        assert refused.value.status() == "StatusCode.UNAVAILABLE"
        assert "This protocol is restricted, expecting header 'triton-grpc-protocol-" in str(refused.value)
    assert client.infer("digits", [pixels], headers=key).as_numpy("scores") is not None
    assert client.get_model_metadata("digits", headers=key).name == "digits"
    assert client.is_server_live(headers={"triton-grpc-protocol-h": "p"}) and client.get_model_config("digits").config.name == "digits"


# --- TensorFlow Serving's files -------------------------------------------------------------------------------------------------------

def quoted(path):
    return '"' + open(path).read().replace("\n", "\\n") + '"'


def test_the_file_that_tensorflow_serving_has_certificates_in(start, tmp_path):
    authority = Authority(tmp_path)
    server, client = authority.issue("server"), authority.issue("client", "DNS:client")
    file = tmp_path / "ssl.cfg"
    file.write_text(f"server_key: {quoted(server.key)}\nserver_cert: {quoted(server.cert)}\ncustom_ca: {quoted(authority.ca)}\nclient_verify: true\n")
    process = start(*TENSORFLOW, f"--port={free_port()}", f"--rest_api_port={free_port()}", "--ssl_config_file", file)
    assert call(f"{process.url}/v1/models/digits").status == 200, "the file is for gRPC alone"

    def ready(**shown):
        with grpc.secure_channel(f"localhost:{process.ports['grpc']}", grpc.ssl_channel_credentials(open(authority.ca, "rb").read(), **shown)) as channel:
            try:
                grpc.channel_ready_future(channel).result(timeout=3)
            except grpc.FutureTimeoutError:
                return False
            return True

    assert ready(private_key=open(client.key, "rb").read(), certificate_chain=open(client.cert, "rb").read())
    assert not ready()


@pytest.mark.parametrize("text, words", [("server_cert: 'x'", "needs a server_key"), ("server_key: 'a' server_cert: 'b' client_verify: true", "custom_ca"),
                                         ("server_key: 'a' server_cert: 'b'", "holds no certificate"), ("server_key {", "1:12")])
def test_a_file_of_certificates_that_makes_no_sense(tmp_path, text, words):
    file = tmp_path / "ssl.cfg"
    file.write_text(text)
    done = serin(*TENSORFLOW, "--ssl_config_file", file)
    assert done.returncode == 2 and words in done.stderr and str(file) in done.stderr


@pytest.mark.parametrize("text, here, nowhere", [
    ('prometheus_config { enable: true path: "/mymetrics" }', "/mymetrics", "/monitoring/prometheus/metrics"),
    ("prometheus_config { enable: true }", "/metrics", "/nowhere"), ("", "/v1/models/digits", "/monitoring/prometheus/metrics")])
def test_the_file_that_says_where_metrics_are(start, tmp_path, text, here, nowhere):
    file = tmp_path / "monitoring.cfg"
    file.write_text(text)
    url = start(*TENSORFLOW, f"--rest_api_port={free_port()}", "--monitoring_config_file", file).url
    assert call(url + here).status == 200 and call(url + nowhere).status >= 400
