"""Several processes use one store and are killed, on all engines that serve several (#31)."""

import pytest

from processes import Processes, save_models
from servers import MilvusServer

STEPS = {"local": 150, "postgres": 60}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return save_models(tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize("engine", STEPS)
def test_killed_processes_lose_nothing_and_leave_one_model(engine, new_place, models):
    local = engine == "local"
    with Processes(new_place(engine), models, local=local) as processes:
        processes.run(STEPS[engine])
    assert processes.faults == [] and processes.kills


@pytest.mark.slow
def test_killed_processes_and_a_milvus_server(tmp_path, models):
    server = MilvusServer(tmp_path / "milvus.db")
    try:
        place = server.store_url("shared")
        with Processes(place, models, local=False, whole=False) as processes:
            processes.run(45)
    finally:
        server.stop()
    assert processes.faults == []
