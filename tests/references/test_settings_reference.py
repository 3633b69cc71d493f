"""runtime/serving/settings/REFERENCE.md against the readers of serin.yaml and config.pbtxt."""

import re
import shutil

from reference_pages import MODELS, between, headings, page, rows, section, serin, source, sources, strings, words

PAGE = "runtime/serving/settings/REFERENCE.md"


def documented_keys():
    return [words(heading)[0] for heading in headings(page(PAGE), 3) if heading.startswith("`")]


def known_keys():
    reader = between(source("settings.cc"), "Result<ModelSettings> read_model_settings(const config::Node& root", "\n}\n")
    return strings(between(reader, "root.allow_only({", "})"))


def config_part():
    return section(page(PAGE), "Keys of config.pbtxt")


def test_each_key_has_one_heading():
    keys = documented_keys()
    assert len(keys) == len(set(keys))
    assert set(keys) == set(known_keys())


def test_the_program_knows_the_same_keys(tmp_path):
    (tmp_path / "digits").mkdir()
    shutil.copytree(MODELS / "digits/1", tmp_path / "digits/1")
    (tmp_path / "digits/serin.yaml").write_text("no_such_key: 1\n")
    told = re.search(r"allowed: ([\w, ]+)", serin("serve", "--check", tmp_path))
    assert told and set(told[1].split(", ")) == set(documented_keys())


def test_each_key_has_type_and_default():
    for key in documented_keys():
        text = section(page(PAGE), f"`{key}`")
        assert re.search(r"^- Type: \S", text, re.M) and re.search(r"^- Default: \S", text, re.M), key


def test_ranges_of_integers():
    constants = {name: int(shift or 0) and 1 << int(shift) or int(number.replace("'", "")) for _, text in sources("settings*.[ch]*")
                 for name, shift, number in re.findall(r"int64_t (k\w+) = (?:int64_t\{1\} << (\d+)|([\d']+))", text)}
    ranges = re.findall(r'root\.integer\("(\w+)", ([\d\']+), ([\w\']+)', source("settings.cc"))
    assert ranges
    for key, least, most in ranges:
        most = constants.get(most, most)
        if str(most).replace("'", "").isdigit():
            told = f"Type: integer, {least} to {str(most).replace(chr(39), '')}"
            assert told in section(page(PAGE), f"`{key}`"), f"{key}: {told}"


def test_keys_within_keys_are_named():
    named = set(re.findall(r"\w+", page(PAGE)))
    for path, text in [*sources("settings*.cc"), *sources("*_step.cc"), *sources("picture_settings.cc"), *sources("ocr.cc")]:
        for inner in re.findall(r"allow_only\(\{([^}]*)\}\)", text):
            assert set(strings(inner)) <= named, path.name


def test_each_precision_and_device_is_named():
    for key, names in (("precision", strings(between(source("settings.h"), "kPrecisionNames = {", "}"))), ("device", ["cpu", "cuda", "cuda:N", "auto"])):
        assert set(names) <= set(words(section(page(PAGE), f"`{key}`"))), key


def test_each_ignored_field_of_config_pbtxt():
    table = re.findall(r'\{"([\w.]+)"', between(source("model_config_ignored.cc"), "kIgnored[] = {", "};"))
    assert table
    assert [words(row[0])[0] for row in rows(section(page(PAGE), "Ignored fields"))] == table


def test_each_field_of_config_pbtxt():
    schema = between(source("model_config.proto"), "message ModelConfig {", "\n}")
    fields = set(re.findall(r"(\w+) = \d+;", schema))
    told = {word.split(".")[0] for row in rows(config_part()) for word in words(row[0])}
    assert told == fields
