"""The feedback loop: answer, judge the answer, adjust the context, answer again (SAGE, section VI)."""

from precise_rag.feedback.controller import FeedbackController as FeedbackController
from precise_rag.feedback.conversation import FeedbackConversation as FeedbackConversation
from precise_rag.feedback.judgement import parse_judgement as parse_judgement
