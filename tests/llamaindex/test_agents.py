"""Agents of LlamaIndex, real ones, whose tools return much."""

import re

import pytest
from llama_index.core import SummaryIndex
from llama_index.core.agent import FunctionAgent
from llama_index.core.agent.workflow import AgentWorkflow
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock
from llama_index.core.llms import mock
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool, QueryEngineTool, ToolOutput
from llama_index.core.workflow import Context

from llamaindex_precise.agents import prune_tool_results
from precise_rag.errors import InputError
from precise_rag.tokens import estimate_tokens
from support.tool_results import LOG, PAGE, RECORDS, read_file

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LlamaIndex's own workflows
QUESTION = "Which disk is full?"
needs_calls = pytest.mark.skipif(
    not hasattr(mock, "MockFunctionCallingLLM"), reason="this LlamaIndex has no such model"
)


def pruned(*tools, **options):
    return prune_tool_results(list(tools), 300, reranker="packaged", **options)


def calls(found, *wanted):
    """A model that makes one call after the other, each of (name, arguments), and then answers."""
    left = list(wanted)

    def reply(messages, **options):
        found[:] = [str(message.content) for message in messages if message.role == MessageRole.TOOL]
        if not left:
            return ChatMessage("It is /dev/sdb1.", role=MessageRole.ASSISTANT)
        name, arguments = left.pop(0)
        if arguments.get("reference") == "":
            arguments["reference"] = re.findall(r"reference='([\w-]+)'", found[-1])[-1]
        call = mock.ToolCallBlock(tool_call_id="1", tool_name=name, tool_kwargs=arguments)
        return ChatMessage(role=MessageRole.ASSISTANT, blocks=[call])

    return mock.MockFunctionCallingLLM(response_generator=reply, is_chat_model=True)


@needs_calls
@pytest.mark.parametrize("is_workflow", [False, True])
async def test_a_long_result_is_cut_and_its_rest_is_read(is_workflow):
    found: list[str] = []
    model = calls(
        found,
        ("read_file", {"path": "worker.log"}),
        ("read_result", {"reference": "", "start": 100}),
        ("read_result", {"reference": "x"}),
        ("read_file", {"path": "note.txt"}),
    )
    agent = FunctionAgent(tools=pruned(read_file), llm=model)
    run = AgentWorkflow(agents=[agent]) if is_workflow else agent
    assert str(await run.run(QUESTION)) == "It is /dev/sdb1."
    cut, read, unknown, short = found
    assert "/dev/sdb1 is full" in cut
    assert estimate_tokens(cut) <= 300
    assert LOG[100:300] in read
    assert unknown.startswith("Error: no result is kept under 'x'")
    assert short == "  short, and with space \n"


async def test_a_tool_that_asks_for_the_context_gets_it():
    seen = []

    async def read(ctx: Context, path: str) -> str:
        seen.append(ctx)
        return LOG

    tool, _ = pruned(FunctionTool.from_defaults(async_fn=read))
    context = Context(FunctionAgent(tools=[], llm=mock.MockLLM()))
    said = [(MessageRole.USER, QUESTION), (MessageRole.ASSISTANT, "In the log?"), (MessageRole.USER, "yes")]
    messages = [ChatMessage(text, role=role) for role, text in said]
    await context.store.set("memory", ChatMemoryBuffer.from_defaults(chat_history=messages))
    output = await tool.acall(run_context=context, path="worker.log")
    assert seen == [context]
    assert "/dev/sdb1 is full" in output.content


def test_tools_of_other_kinds_keep_what_a_model_knows_of_them(scripted_chat):
    engine = SummaryIndex([]).as_query_engine(llm=scripted_chat(reply=lambda prompt: LOG))
    town = QueryEngineTool.from_defaults(engine, name="town", description="Knows the town.")
    tool, reader = pruned(town)
    assert tool.metadata == town.metadata
    assert reader.metadata.get_name() == "read_result"
    assert set(reader.metadata.get_parameters_dict()["properties"]) == {"reference", "start", "question"}


def test_blocks_of_text_and_values_are_cut_and_pictures_errors_and_what_goes_to_the_user_stay():
    picture = ImageBlock(image=b"iVBORw0KGgo=")
    shown, _ = pruned(FunctionTool.from_defaults(lambda query: [TextBlock(text=PAGE), picture], name="show"))
    text, same = shown.call(query="When is __exit__ called?").blocks
    assert estimate_tokens(text.text) <= 300
    assert same == picture
    listed, _ = pruned(FunctionTool.from_defaults(lambda query: RECORDS, name="items"))
    output = listed.call("Which item was discontinued?")
    assert output.raw_output == RECORDS
    assert str(RECORDS[77]) in output.content
    assert estimate_tokens(output.content) <= 300

    def failed(result: object) -> ToolOutput:
        return ToolOutput("fails", content=LOG, raw_input={}, raw_output=LOG, is_error=True)

    broken, _ = pruned(FunctionTool.from_defaults(read_file, callback=failed))
    assert broken.call(path="worker.log").content == LOG
    direct = FunctionTool.from_defaults(read_file, return_direct=True)
    assert pruned(direct)[0] is direct
    excluded = FunctionTool.from_defaults(read_file)
    assert pruned(excluded, exclude_tools=["read_file"])[0] is excluded


def test_other_tools_and_tools_that_are_wrapped_twice_are_refused():
    for tools, message in (
        (FunctionTool.from_defaults(read_file), "tools must be a list"),
        ([3], r"tools must be a list of tools or functions, got \[3\]"),
        (pruned(read_file), "called read_result already"),
    ):
        with pytest.raises(InputError, match=message):
            prune_tool_results(tools)
