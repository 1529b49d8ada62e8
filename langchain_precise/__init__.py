"""precise-rag for LangChain: text splitters, retrievers, document compressors and a chain."""

from langchain_precise.compressors import CompressorInput as CompressorInput
from langchain_precise.compressors import GradientSelectionCompressor as GradientSelectionCompressor
from langchain_precise.compressors import RedundancyCompressor as RedundancyCompressor
from langchain_precise.compressors import RerankCompressor as RerankCompressor
from langchain_precise.embeddings import PreciseEmbeddings as PreciseEmbeddings
from langchain_precise.retrievers import HybridRetriever as HybridRetriever
from langchain_precise.retrievers import SentenceContextRetriever as SentenceContextRetriever
from langchain_precise.retrievers import WordSentenceRetriever as WordSentenceRetriever
from langchain_precise.self_feedback import SelfFeedbackChain as SelfFeedbackChain
from langchain_precise.self_feedback import SelfFeedbackOutput as SelfFeedbackOutput
from langchain_precise.text_splitters import (
    SemanticSegmentationTextSplitter as SemanticSegmentationTextSplitter,
)
