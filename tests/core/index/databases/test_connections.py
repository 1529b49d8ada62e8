"""Connections to PostgreSQL: few, shared by all threads and indexes of an address, and opened again."""

import pickle
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from precise_rag.errors import DatabaseError, InputError
from precise_rag.index import DatabaseIndex
from precise_rag.index.databases.engine import PostgresEngine
from precise_rag.testing import HashEncoder
from precise_rag.types import Document
from support.children import has_fork, in_child

psycopg = pytest.importorskip("psycopg")
WAIT = "precise_rag.index.databases.engine._WAIT"
DOCUMENTS = [Document("a", "The cat sleeps."), Document("b", "A dog barks.")]


def built(address: str, name: str) -> DatabaseIndex:
    """A new index in the collection `name`, whose connections have this name too."""
    location = f"{address}&collection={name}&application_name={name}"
    return DatabaseIndex.build(DOCUMENTS, HashEncoder(), location=location)


def n_connections(postgres: str, name: str) -> int:
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
    with psycopg.connect(postgres) as connection:
        return int(connection.execute(query, [name]).fetchone()[0])


def wait_until_all_ended(postgres: str, name: str) -> None:
    """The server ends a connection a little after the client does."""
    deadline = time.monotonic() + 10
    while n_connections(postgres, name):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.2)  # it goes on counting one that it no longer shows


def end_connections(postgres: str, name: str) -> None:
    query = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = %s"
    with psycopg.connect(postgres) as connection:
        assert set(connection.execute(query, [name]).fetchall()) == {(True,)}


def test_130_threads_share_connections_of_an_address(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of several indexes there; a restored copy has the same bound."""
    monkeypatch.setattr(WAIT, 250.0)
    address = f"{postgres}&application_name=many&max_connections=3"
    index = DatabaseIndex.build(DOCUMENTS, HashEncoder(), location=f"{address}&collection=many_a")
    other = DatabaseIndex.build(DOCUMENTS, HashEncoder(), location=f"{address}&collection=many_b")
    indexes = [index, other, pickle.loads(pickle.dumps(index))]
    most = []

    def search(number: int) -> str:
        if number % 10 == 0:
            most.append(n_connections(postgres, "many"))
        return indexes[number % 3].search("cat", 1)[0].doc_id

    with ThreadPoolExecutor(130) as threads:
        assert set(threads.map(search, range(130))) == {"a"}
    assert max(most) <= 3
    index.close()
    wait_until_all_ended(postgres, "many")
    assert other.search("dog", 1)[0].doc_id == "b"


def test_a_thread_that_gets_no_connection_says_so(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WAIT, 0.05)
    index = built(f"{postgres}&max_connections=1", "waits")
    with index.engine.view(), pytest.raises(DatabaseError, match="all 1 were in use"):
        index.search("cat")
    assert index.search("cat", 1)[0].doc_id == "a"


def test_a_server_that_allows_fewer_is_waited_for(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute("CREATE ROLE alone LOGIN CONNECTION LIMIT 1; GRANT ALL ON SCHEMA public TO alone")
    address = postgres.replace("//postgres:@", "//alone@")
    index = built(address, "fewer")
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(lambda _: index.search("cat", 1)[0].doc_id, range(16))) == {"a"}
    index.close()
    wait_until_all_ended(postgres, "fewer")
    other = psycopg.connect(address, application_name="fewer")
    with other, pytest.raises(DatabaseError, match="too many connections"):
        index.search("cat")
    wait_until_all_ended(postgres, "fewer")
    assert index.search("cat", 1)[0].doc_id == "a"
    monkeypatch.setattr(WAIT, 0.6)
    with psycopg.connect(postgres) as connection:
        connection.execute("ALTER ROLE alone NOLOGIN")
    end_connections(postgres, "fewer")
    with pytest.raises(DatabaseError, match=r"no connection was free.*not permitted to log in"):
        index.search("cat")


def test_an_address_that_never_answers_is_given_up_and_holds_up_no_other(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("precise_rag.index.databases.engine._CONNECT", "2")
    index = built(postgres, "healthy")
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(1) as threads:
        location = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/db"
        other = threads.submit(PostgresEngine(location).settings)
        time.sleep(0.2)
        assert index.search("cat", 1)[0].doc_id == "a"
        assert not other.done()
        with pytest.raises(DatabaseError, match="timeout"):
            other.result()


def test_a_server_that_is_gone_is_not_taken_for_a_busy_one(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WAIT, 6.0)
    (folder,) = re.findall(r"(?<=host=)[^&]+", postgres)
    (tmp_path / "s").symlink_to(folder)
    index = built(postgres.replace(folder, str(tmp_path / "s")), "gone")
    (tmp_path / "s").unlink()
    end_connections(postgres, "gone")
    with pytest.raises(DatabaseError, match="No such file"):
        index.search("cat")
    index.close()


def test_a_database_without_an_encoding_holds_any_text(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE plain ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    documents = [Document("日本", "Łódź is a town.", {"tag": "Zürich"}), Document("b", "A dog barks.")]
    index = DatabaseIndex.build(documents, HashEncoder(), location=postgres.replace("/postgres?", "/plain?"))
    found = index.search("town", filter={"tag": {"$in": ["Zürich"]}})
    assert [(one.doc_id, one.text) for one in found] == [("日本", "Łódź is a town.")]


@has_fork
def test_a_forked_child_opens_connections_of_its_own(postgres: str) -> None:
    """Those of its parent, lent or idle, go on where they were, also when the child closes its index."""
    index = built(postgres, "forked")

    def work() -> list[str]:
        index.add([Document("c", "An owl.")])
        found = [index.search(query, 1)[0].doc_id for query in ("cat", "owl")]
        index.close()
        return found

    with index.engine.view() as view:
        assert view.count() == 2
        assert index.search("dog", 1)[0].doc_id == "b"
        assert n_connections(postgres, "forked") == 2
        assert in_child(work) == ["a", "c"]
        assert view.count() == 2
        assert n_connections(postgres, "forked") == 2
    assert index.search("owl", 1)[0].doc_id == "c"


def test_connections_that_the_server_ended_are_opened_again(postgres: str) -> None:
    """The call that is under way fails with one error of ours, and the next one connects again."""
    index = built(postgres, "ended")

    def read_while_it_ends() -> None:
        with index.engine.view() as view:
            end_connections(postgres, "ended")
            view.count()

    for change in (lambda: index.add([Document("c", "An owl.")]), lambda: index.delete(["a"])):
        end_connections(postgres, "ended")
        change()
    with pytest.raises(DatabaseError, match=r"terminat|closed|lost"):
        read_while_it_ends()
    assert set(index.document_ids) == {"b", "c"}


def test_options_of_an_address_reach_the_server(postgres: str) -> None:
    options = "-c%20statement_timeout%3D7s%20-c%20work_mem%3D9MB"
    with PostgresEngine(f"{postgres}&options={options}").connection() as db:
        assert db.execute("SHOW statement_timeout").fetchone()[0] == "7s"
        assert db.execute("SHOW work_mem").fetchone()[0] == "9MB"
        for _ in range(9):  # so often that psycopg would prepare it, which a pooler's next client would meet
            assert not db.execute("SELECT name FROM pg_prepared_statements").fetchall()


def test_errors_and_pickles_name_the_server_without_passwords_or_user() -> None:
    address = "postgresql://me:first5ecret@127.0.0.1:1/db?password=other5ecret&connect_timeout=1"
    engine = PostgresEngine(address)
    with pytest.raises(DatabaseError, match=r"^postgresql://127\.0\.0\.1:1/db") as raised:
        engine.settings()
    shown = f"{raised.value} {engine.location} {engine!r} {pickle.dumps(engine)!r}"
    assert "5ecret" not in shown
    with pytest.raises(InputError, match="is not a database URL") as refused:
        PostgresEngine("postgresql://me:first5ecret@[::1/db")
    assert "5ecret" not in str(refused.value)
    with pytest.raises(DatabaseError, match=r"^postgresql://127\.0\.0\.1:1/postgres"):  # no secret
        PostgresEngine("postgresql://postgres@127.0.0.1:1/postgres?connect_timeout=1").settings()


@pytest.mark.parametrize("number", ["0", "-1", "many", "1e3"])
def test_a_bound_that_is_no_number_is_named(number: str) -> None:
    with pytest.raises(InputError, match="max_connections must be a whole number from 1"):
        DatabaseIndex(f"postgresql://127.0.0.1:1/db?max_connections={number}", HashEncoder())
