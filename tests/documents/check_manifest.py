"""Checks a CronJob for what the API server would refuse or ignore, and prints the command of its container, word by
word. Of the fields that Kubernetes knows, those are listed that our manifests use."""
import sys

import yaml

KNOWN = {
    "": {"apiVersion", "kind", "metadata", "spec"},
    "metadata": {"name", "namespace", "labels"},
    "spec": {"schedule", "timeZone", "concurrencyPolicy", "startingDeadlineSeconds", "jobTemplate"},
    "spec.jobTemplate": {"spec"},
    "spec.jobTemplate.spec": {"backoffLimit", "podFailurePolicy", "template"},
    "spec.jobTemplate.spec.podFailurePolicy": {"rules"},
    "spec.jobTemplate.spec.podFailurePolicy.rules": {"action", "onExitCodes"},
    "spec.jobTemplate.spec.podFailurePolicy.rules.onExitCodes": {"containerName", "operator", "values"},
    "spec.jobTemplate.spec.template": {"metadata", "spec"},
    "spec.jobTemplate.spec.template.spec": {"restartPolicy", "terminationGracePeriodSeconds", "containers"},
    "spec.jobTemplate.spec.template.spec.containers": {"name", "image", "command", "args", "env", "resources"},
    "spec.jobTemplate.spec.template.spec.containers.env": {"name", "value", "valueFrom"},
    "spec.jobTemplate.spec.template.spec.containers.env.valueFrom": {"secretKeyRef"},
    "spec.jobTemplate.spec.template.spec.containers.env.valueFrom.secretKeyRef": {"name", "key"},
    "spec.jobTemplate.spec.template.spec.containers.resources": {"requests", "limits"},
    "spec.jobTemplate.spec.template.spec.containers.resources.requests": {"cpu", "memory"},
}


def check_fields(value, path=""):
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            unknown = set(each) - KNOWN.get(path, set())
            assert not unknown, f"{path}: unknown fields {sorted(unknown)}"
            for name, inner in each.items():
                check_fields(inner, f"{path}.{name}".lstrip("."))


def check(manifest):
    check_fields(manifest)
    assert (manifest["apiVersion"], manifest["kind"]) == ("batch/v1", "CronJob")
    spec = manifest["spec"]
    assert len(spec["schedule"].split()) == 5, "schedule"
    assert spec["concurrencyPolicy"] in {"Allow", "Forbid", "Replace"}, "concurrencyPolicy"
    assert spec["startingDeadlineSeconds"] >= 10, "startingDeadlineSeconds: the controller looks every 10 s"
    job = spec["jobTemplate"]["spec"]
    pod = job["template"]["spec"]
    assert pod["restartPolicy"] == "Never", "a podFailurePolicy wants restartPolicy: Never"
    assert pod["terminationGracePeriodSeconds"] > 5, "--kill-after is 5 s"
    containers = {container["name"]: container for container in pod["containers"]}
    for rule in job["podFailurePolicy"]["rules"]:
        assert rule["action"] in {"FailJob", "Ignore", "Count"}, "action"
        codes = rule["onExitCodes"]
        assert codes["operator"] in {"In", "NotIn"}, "operator"
        assert codes["containerName"] in containers, "containerName"
        assert codes["values"] == sorted(set(codes["values"])) and 0 not in codes["values"], "values"
    for container in containers.values():
        words = container["command"] + container["args"]
        assert all(isinstance(word, str) for word in words), f"not all of them are text: {words}"
        print("\n".join(words))


with open(sys.argv[1], encoding="utf-8") as file:
    check(yaml.safe_load(file))
