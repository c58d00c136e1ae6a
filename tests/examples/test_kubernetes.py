"""Test that examples/kubernetes.yaml conforms to Kubernetes' schema and is consistent. No cluster is needed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import jsonschema
import yaml

from tools.lessons import notebooks

SCHEMA = json.loads(Path(__file__).with_name("kubernetes.schema.json").read_text(encoding="utf-8"))
MANIFEST = list(yaml.safe_load_all((notebooks.ROOT / "examples" / "kubernetes.yaml").read_text(encoding="utf-8")))


def schema_violations(objects: list[dict]) -> list[str]:
    """Return the violations of the schema, each with its location in the object."""
    check = jsonschema.Draft7Validator(SCHEMA)
    return [f"{error.json_path}: {error.message}" for actual in objects for error in check.iter_errors(actual)]


def disagreements(objects: list[dict]) -> list[str]:
    """Describe each pair of values that must be equal but aren't."""
    service, job = objects
    pod = job["spec"]["template"]["spec"]
    [container], name = pod["containers"], job["metadata"]["name"]
    [line] = [line for line in container["command"][-1].splitlines() if "train.py" in line]
    words = shlex.split(line)
    arguments = dict(zip(words[words.index("exec") + 3 :: 2], words[words.index("exec") + 4 :: 2], strict=True))
    [mount], [volume] = container["volumeMounts"], pod["volumes"]
    pairs = {
        "the Service is headless": (service["spec"]["clusterIP"], "None"),
        "the Service selects the Job's pods": (service["spec"]["selector"], {"job-name": name}),
        "the pods' names are the Service's": (pod["subdomain"], service["metadata"]["name"]),
        "pods are numbered": (job["spec"]["completionMode"], "Indexed"),
        "all pods run at the same time": (job["spec"]["parallelism"], job["spec"]["completions"]),
        "the script gets the number of pods": (arguments["--processes"], str(job["spec"]["completions"])),
        "the script gets its pod's index": (arguments["--id"], "$JOB_COMPLETION_INDEX"),
        "process 0 runs in pod 0": (arguments["--coordinator"].partition(":")[0], f"{name}-0.{pod['subdomain']}"),
        "the script runs from its mounted path": (words[words.index("exec") + 2], f"{mount['mountPath']}/train.py"),
        "the mounted volume is defined": (mount["name"], volume["name"]),
    }
    return [f"{what}: {actual!r} is not {wanted!r}" for what, (actual, wanted) in pairs.items() if actual != wanted]


def test_the_manifest_conforms_to_the_schema():
    assert [actual["kind"] for actual in MANIFEST] == ["Service", "Job"]
    assert schema_violations(MANIFEST) == []


def test_repeated_values_agree():
    assert disagreements(MANIFEST) == []
