"""The feedback loop: answer, judge the answer, adjust the context, answer again (SAGE, section VI)."""

from precise_rag.feedback.controller import FeedbackController
from precise_rag.feedback.conversation import FeedbackConversation
from precise_rag.feedback.judgement import parse_judgement

__all__ = ["FeedbackController", "FeedbackConversation", "parse_judgement"]
