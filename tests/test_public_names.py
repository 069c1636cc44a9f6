"""What others may rely on: a name that goes, or a new one, is a decision and changes this list."""

from importlib import import_module

import pytest

PUBLIC = {
    "vdsh": """Client Document HammingIndex JointModel Model TextHasher VdshError VectorHasher
        __version__ open_store read_documents""",
    "vdsh.documents": "Document DocumentReader read_documents",
    "vdsh.text": "BagOfWords SMART WEIGHTINGS inverse_document_frequency tokenize weigh",
    "vdsh.codes": """binarize check_n_bits check_threshold expected_distances from_hex pack
        plain_threshold thresholds to_bit_strings to_hex to_words unpack""",
    "vdsh.hashers": """HASHERS Hasher ITQ KSH LSH LinearHashing SHTTM SelfTaughtHashing
        SpectralHashing StackedRBM VDSH VDSH_S VDSH_SP VectorHasher
        default_method""",
    "vdsh.explain": """Agreement BitExplanation PairExplanation Sample SharedWord TextBit
        TextExplanation Word as_fields check_bit explain_bits
        explain_pair explain_text sample""",
    "vdsh.model": "Decoder Model NotLearnedError Posterior WordsOnly as_model",
    "vdsh.search": "HammingIndex Hits RowHits RowIndex",
    "vdsh.store": """Duplicates Hit Hits Store copy_store open_store restore_store
        without_password""",
    "vdsh.export": "Exported FORMATS export_codes",
    "vdsh.datasets": "DATASETS Dataset Source Split find load random_split",
    "vdsh.evaluation": """Comparison Quality Query QueryEvaluation Ranking compare evaluate_queries
        find_faults measure_codes measure_quality read_queries yardsticks""",
    "vdsh.paper.protocol": "Evaluation evaluate_among evaluate_codes",
    "vdsh.metrics.ranking": """Tally average_precision cosine_precision ndcg_at precision_at
        precision_within random_precision recall_at recall_within tally""",
    "vdsh.server.app": "create_app",
    "vdsh.errors": """DamageError DownloadError EngineError FolderError GoneError InputError
        MissingFileError MissingPackageError OutputExistsError VdshError WriteError missing_package
        needing suggest""",
}


def public_names(module):
    """Read `__all__`, or what a module without one defines itself and does not hide."""
    if hasattr(module, "__all__"):
        return set(module.__all__)
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    }


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names(name):
    module = import_module(name)
    assert public_names(module) == set(PUBLIC[name].split())
    assert all(hasattr(module, public) for public in PUBLIC[name].split())


def test_other_names_are_not_there():
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = import_module("vdsh").Nonsense
