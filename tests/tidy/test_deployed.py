"""compose.yaml and deploy/cluster.toml agree with what Caudal reads and writes elsewhere."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from caudal.cluster.settings import FILE, parse
from caudal.cluster.write_config import write_settings
from caudal.store.s3_settings import S3Settings

ROOT = Path(__file__).parents[2]
HOWTO = ROOT / "docs" / "howto"


class Asked(Mapping[str, str]):
    """An environment in which nothing is set. It remembers what was asked for."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


@pytest.fixture
def asked() -> set[str]:
    """The variables that S3 is read from."""
    environment = Asked()
    S3Settings.from_environment(environment)
    return environment.names


def test_compose_passes_every_setting_of_s3_to_each_that_opens_a_store(asked: set[str]) -> None:
    services = msgspec.yaml.decode((ROOT / "compose.yaml").read_bytes())["services"]
    given = {name: one.get("environment") or {} for name, one in services.items()}
    assert {name for name in given if not given[name]} == {"init"}
    for name in set(given) - {"init", "client"}:
        passed = {
            key for key, value in given[name].items() if value is None
        }  # only where it is set
        assert passed == asked, name


def test_the_page_about_several_machines_names_every_setting_of_s3(asked: set[str]) -> None:
    text = (HOWTO / "several-machines.md").read_text(encoding="utf-8")
    assert sorted(name for name in asked if f"`{name}`" not in text) == []


def test_an_empty_variable_is_one_that_is_not_set(asked: set[str]) -> None:
    """A shell may export it empty, and compose passes that on."""
    assert S3Settings.from_environment(dict.fromkeys(asked, "")) == S3Settings()


def test_a_cluster_in_containers_has_the_ports_and_processes_of_caudal_up(tmp_path: Path) -> None:
    write_settings(tmp_path / "cluster", broker="embedded")
    written = parse((tmp_path / "cluster" / FILE).read_bytes(), FILE)
    contained = parse((ROOT / "deploy" / "cluster.toml").read_bytes(), FILE)
    assert contained.hosts == written.hosts
