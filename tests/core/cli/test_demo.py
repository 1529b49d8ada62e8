import json


def test_the_demo_runs_on_given_documents(folder, precise):
    args = ["demo", folder / "docs" / "lamp.txt", "--question", "Who keeps the lamp?"]
    code, out, _ = precise(*args, "--json")
    record = json.loads(out)
    assert code == 0
    assert "Ilse Brandt" in record["candidates"][0]["text"]
    assert record["tokens"] == sum(c["n_tokens"] for c in record["candidates"] if c["kept"])
    code, out, _ = precise(*args)
    assert code == 0
    assert f"sent: {record['tokens']} tokens" in out
