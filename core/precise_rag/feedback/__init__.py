"""Answers that are judged, and ask for more or less context (SAGE, section VI)."""

from precise_rag.feedback.controller import FeedbackController as FeedbackController
from precise_rag.feedback.controller import Step as Step
from precise_rag.feedback.judgement import parse_judgement as parse_judgement
from precise_rag.feedback.loop import FeedbackLoop as FeedbackLoop
