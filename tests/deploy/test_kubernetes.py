"""deploy/kubernetes against the schemas of Kubernetes, by a program that has them all."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
VALIDATE = os.environ.get("CAUDAL_KUBERNETES_VALIDATE", "kubernetes-validate")


def required(program: str, package: str) -> str:
    """Return the program; fail if it is not here, like the tests whose programs make installs."""
    found = shutil.which(program)
    return found or pytest.fail(f"{program} is missing: apt-get install {package}")


@pytest.mark.parametrize("version", ["1.29", "1.37"])
@pytest.mark.parametrize("name", ["settings.yaml", "gateway.yaml", "worker.yaml"])
def test_a_manifest_fits_its_schema(name: str, version: str) -> None:
    command = [VALIDATE, "--strict", "-k", version, str(FOLDER / name)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_key_is_noticed(tmp_path: Path) -> None:
    wrong = (FOLDER / "gateway.yaml").read_text().replace("readinessProbe", "readyProbe")
    (tmp_path / "wrong.yaml").write_text(wrong)
    command = [VALIDATE, "--strict", str(tmp_path / "wrong.yaml")]
    assert subprocess.run(command, capture_output=True).returncode != 0


def test_the_base_renders() -> None:
    tag = re.search(r'newTag: "(.+)"', (FOLDER / "kustomization.yaml").read_text())
    assert tag is not None
    command = [required("kubectl", "kubernetes-client"), "kustomize", str(FOLDER)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("namespace: caudal") == 7
    images = re.findall(r"image: (\S+)", done.stdout)
    assert images == [f"registry.example/caudal:{tag[1]}"] * 2


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    unit = (FOLDER.parent / "systemd" / "caudal@.service").read_text()
    here = tmp_path / "caudal@a.service"
    here.write_text(unit.replace("/opt/caudal/bin/caudal", "/bin/true").replace("=caudal", "=root"))
    done = subprocess.run(
        [required("systemd-analyze", "systemd"), "verify", "--man=no", str(here)],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
