"""The feedback loop: answer, judge the answer, adjust the context, answer again (SAGE, section VI)."""

from precise_rag.feedback.controller import FeedbackController as FeedbackController
from precise_rag.feedback.estimate import Estimate as Estimate
from precise_rag.feedback.estimate import estimate_cost as estimate_cost
from precise_rag.feedback.judgement import parse_judgement as parse_judgement
from precise_rag.feedback.loop import FeedbackLoop as FeedbackLoop
