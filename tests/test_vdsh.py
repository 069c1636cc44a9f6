"""The three models: equations, encoders, training."""

import json
import math

import numpy as np
import pytest
import torch

from conftest import QUICK, toy_corpus
from vdsh import TextHasher
from vdsh.codes import pack
from vdsh.errors import InputError
from vdsh.hashers import VDSH, VDSH_S, VDSH_SP
from vdsh.hashers.base import Examples
from vdsh.hashers.vdsh import batches, training
from vdsh.hashers.vdsh.batches import Buffer, DenseBatch, sparse_batches
from vdsh.hashers.vdsh.epochs import Documents, in_order, shuffled
from vdsh.hashers.vdsh.neighbours import nearest
from vdsh.hashers.vdsh.network import Network, Posterior
from vdsh.hashers.vdsh.objective import L1, L2, L3, Weights, divergence
from vdsh.hashers.vdsh.presets import PAPER
from vdsh.hashers.vdsh.validation import tally
from vdsh.labels import read_labels
from vdsh.metrics import ranking
from vdsh.metrics.ranking import precision_at
from vdsh.text import BagOfWords, inverse_document_frequency, weigh

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def corpus_():
    texts, labels = toy_corpus()
    counts = BagOfWords().fit_transform(texts).astype(np.float32)
    inputs = weigh(counts, "tfidf", inverse_document_frequency(counts))
    return Examples(inputs, counts, read_labels(labels))


@pytest.fixture
def documents(corpus_):
    return Documents(corpus_, "counts", CPU)


def some_labels(share):
    """Labels of the toy corpus, a part of them hidden."""
    return [label if i % 10 < 10 * share else None for i, label in enumerate(toy_corpus()[1])]


def network_of(documents, *, private=False, n_labels=2, bounded=True, decoder_size=0):
    kind = VDSH_SP if private else VDSH
    hasher = kind(16, decoder_size=decoder_size, log_variance="bounded" if bounded else "free")
    hasher.hidden_size_, hasher.dropout_ = 8, 0.0
    return Network(hasher, documents.n_terms, n_labels, 0, torch.Generator().manual_seed(0))


def test_divergence_is_that_of_two_normal_distributions():
    mu, log_variance = torch.tensor([[0.3, -2.0]]), torch.tensor([[0.5, -1.0]])
    q = torch.distributions.Normal(mu, torch.exp(0.5 * log_variance))
    expected = torch.distributions.kl_divergence(q, torch.distributions.Normal(0.0, 1.0)).sum(-1)
    torch.testing.assert_close(divergence(Posterior(mu, log_variance)), expected)


@pytest.mark.parametrize("bound", [L1, L2, L3])
def test_bounds_agree_with_the_paper_computed_word_by_word(bound, documents, corpus_):
    """Sum over single words and labels with plain numbers, from the same draw of s and v."""
    network = network_of(documents, private=bound is L3)
    batch = next(iter(sparse_batches(in_order(documents), 5)))
    with torch.no_grad():
        t2 = network.hidden(batch)
        weights = Weights(kl=0.7, labels=3.0)
        noise = network.noise(5, 1, torch.Generator().manual_seed(1))
        found = bound(network, batch, t2, weights, noise).value
        Q = network.posterior(t2)
        s = Q.sample(noise[0])[0]
        z, kl = s, divergence(Q)
        if bound is L3:
            Q_v = network.private_posterior(t2)
            z, kl = s + Q_v.sample(noise[1])[0], kl + divergence(Q_v)
        for d in range(5):
            P = torch.softmax(z[d] @ network.G + network.b_words, 0)
            row = corpus_.counts[[d]]
            words = zip(row.indices, row.data, strict=True)
            value = sum(n * math.log(P[w]) for w, n in words) - 0.7 * kl[d]
            if bound is not L1:
                odds = torch.sigmoid(s[d] @ network.U + network.b_labels)
                y = corpus_.labels.matrix[d]
                value += 3 * sum(
                    math.log(p) if label else math.log(1 - p)
                    for p, label in zip(odds, y, strict=True)
                )
            assert float(found[d]) == pytest.approx(float(value), rel=1e-4)


def test_unlabelled_documents_have_no_label_term(corpus_):
    unknown = corpus_._replace(labels=corpus_.labels._replace(known=np.zeros(80, bool)))
    documents = Documents(unknown, "binary", CPU)
    network = network_of(documents)
    batch = next(iter(sparse_batches(in_order(documents), 5)))
    t2, noise = network.hidden(batch), network.noise(5, 1, torch.Generator().manual_seed(1))
    with_labels = L2(network, batch, t2, Weights(1.0, 100.0), noise)
    without = L1(network, batch, t2, Weights(1.0), noise)
    torch.testing.assert_close(with_labels.value, without.value)


@pytest.mark.parametrize("kind", [VDSH, VDSH_S, VDSH_SP])
def test_epochs_of_the_gpu_path_learn_what_plain_ones_do(corpus_, kind, monkeypatch):
    """Run on a CPU, where nothing is recorded: the steps, their order and the sums of an epoch."""
    settings = {"random_state": 0, "epochs": 3, "hidden_size": 24, "batch_size": 20}
    labels = toy_corpus()[1]

    def fit():
        hasher = kind(8, device="cpu", **settings)
        return hasher.fit(corpus_.counts, labels, validation=(corpus_.counts, labels))

    plain = fit()
    monkeypatch.setattr(training, "plain_epochs", training.graphed_epochs)
    dense = fit()
    for name in ("W1_", "W3_", "b4_", "G_"):
        np.testing.assert_allclose(getattr(dense, name), getattr(plain, name), atol=2e-4)
    for one, other in zip(dense.history_[1:], plain.history_[1:], strict=True):
        assert one == pytest.approx(other, rel=1e-3)


@pytest.mark.parametrize("at_once", [1, 2, 9])  # batches of the three
@pytest.mark.parametrize("k", [0, 3])
def test_dense_batches_of_the_gpu_path_agree_with_sparse_ones(corpus_, k, at_once, monkeypatch):
    """The GPU's way of building a batch, run on the CPU, the last and partial batch included."""
    monkeypatch.setattr(batches, "MOST_DENSE", at_once * 30 * corpus_.counts.shape[1])
    neighbours = nearest(corpus_.inputs, k)[0] if k else None
    documents = Documents(corpus_, "binary", CPU, neighbours)
    network = network_of(documents)
    epoch = shuffled(documents, 0.3, 0.4, torch.Generator().manual_seed(0))
    buffer = Buffer(documents, 30)
    list(buffer.fill(in_order(documents)))  # leaves no trace
    taken = []
    for n in buffer.fill(epoch):
        for _ in range(n):
            taken.append(DenseBatch(*(part.clone() for part in buffer.batch)))
            buffer.advance()
    for dense, sparse in zip(taken, sparse_batches(epoch, 30), strict=True):
        n = len(sparse.known)
        assert dense.present.tolist() == [1] * n + [0] * (30 - n)
        torch.testing.assert_close(dense.labels[:n], sparse.labels)
        torch.testing.assert_close(dense.project(network.W1)[:n], sparse.project(network.W1))
        logits = torch.randn(2, 30, documents.n_terms, generator=torch.Generator().manual_seed(1))
        logits.requires_grad_()
        found = [dense.log_likelihood(logits)[:, :n], sparse.log_likelihood(logits[:, :n])]
        torch.testing.assert_close(*found)
        weights = torch.linspace(-1, 2, 2 * n).view(2, n)
        slopes = [torch.autograd.grad((one * weights).sum(), logits)[0] for one in found]
        torch.testing.assert_close(*slopes)


def test_word_dropout_hides_words_from_the_encoder_only(documents):
    epoch = shuffled(documents, 0.5, 0.0, torch.Generator().manual_seed(0))
    hidden = (epoch.inputs == 0).float().mean()
    assert 0.35 < hidden < 0.65
    assert (epoch.targets > 0).all()


def test_a_share_of_each_target_comes_from_a_neighbour(corpus_):
    neighbours = nearest(corpus_.inputs, 2)[0]
    documents = Documents(corpus_, "binary", CPU, neighbours)
    epoch = shuffled(documents, 0.0, 0.25, torch.Generator().manual_seed(0))
    order = torch.randperm(80, generator=torch.Generator().manual_seed(0))
    dense = corpus_.counts.toarray() > 0
    drawn = set()
    for batch, row in zip(sparse_batches(epoch, 1), order.tolist(), strict=True):
        target = torch.zeros(documents.n_terms).index_add(0, batch.columns, batch.targets).numpy()
        options = [0.75 * dense[row] + 0.25 * dense[other] for other in neighbours[row]]
        matches = [i for i, option in enumerate(options) if np.allclose(target, option)]
        assert matches
        drawn.update(matches)
        own = corpus_.inputs[[row]].toarray()[0]
        seen = torch.zeros(documents.n_terms).index_add(0, batch.seen, batch.inputs).numpy()
        assert np.allclose(seen, own)  # the encoder sees the document alone
    assert drawn == {0, 1}


def test_a_document_without_labels_borrows_those_of_its_neighbour(corpus_):
    labels = read_labels(some_labels(0.2))
    neighbours = np.tile(np.array([[0, 79]], np.int32), (80, 1))  # labelled, and not
    documents = Documents(corpus_._replace(labels=labels), "binary", CPU, neighbours)
    epoch = shuffled(documents, 0.0, 0.5, torch.Generator().manual_seed(0))
    order = torch.randperm(80, generator=torch.Generator().manual_seed(0)).numpy()
    own = labels.known[order]
    assert (epoch.labels.numpy()[own] == labels.matrix[order][own]).all()
    lent = epoch.known.numpy()[~own] > 0
    assert 0 < lent.sum() < len(lent)
    assert (epoch.labels.numpy()[~own][lent] == labels.matrix[0]).all()
    assert not epoch.labels.numpy()[~own][~lent].any()


@pytest.mark.parametrize(
    ("labelled", "expected"),
    [(1.0, (0.2, 0.0, 2.0)), (0.3, (0.45, 0.15, 0.315))],
)
def test_with_fewer_labels_a_supervised_model_trains_more_as_vdsh_does(labelled, expected, corpus_):
    hasher = VDSH_S(8, random_state=0, **QUICK).fit(corpus_.counts, some_labels(labelled))
    assert (hasher.word_dropout_, hasher.neighbor_share_, hasher.kl_weight_) == expected
    other = VDSH_S(8, random_state=0, kl_weight=0.7, **QUICK)
    assert other.fit(corpus_.counts, some_labels(labelled)).kl_weight_ == 0.7


def test_a_deep_decoder_sees_little_more_than_signs(documents):
    network = network_of(documents, decoder_size=6)
    s = torch.tensor([[[5.0] * 8 + [-5.0] * 8, [9.0] * 8 + [-9.0] * 8]])  # (1, 2, K)
    words, labels = network.word_logits(s), network.label_logits(s)
    assert words.shape == (1, 2, documents.n_terms)
    torch.testing.assert_close(words[:, 0], words[:, 1], atol=1e-3, rtol=0)
    torch.testing.assert_close(labels[:, 0], labels[:, 1], atol=1e-3, rtol=0)


def test_a_deep_decoder_starts_at_the_frequencies_of_words_and_labels(documents):
    network = network_of(documents, decoder_size=6)
    network.expect(documents)
    torch.testing.assert_close(network.b_words.exp().sum(), torch.tensor(1.0))
    assert network.b_words.argmax() == documents.word_frequencies().argmax()
    torch.testing.assert_close(network.b_labels.sigmoid(), torch.tensor([0.5, 0.5]))


@pytest.mark.parametrize("settings", [{"neighbor_share": 0.5}, {"decoder_size": 20, "epochs": 40}])
@pytest.mark.parametrize("kind", [VDSH, VDSH_S, VDSH_SP])
def test_training_beyond_the_paper_tells_topics_apart(kind, settings):
    texts, labels = toy_corpus()
    counts = BagOfWords().fit_transform(texts)
    hasher = kind(16, random_state=0, **(QUICK | settings)).fit(counts, labels)
    codes, matrix = hasher.encode(counts), read_labels(labels).matrix
    assert precision_at(ranking.tally(codes, matrix, codes, matrix), 20).mean() > 0.95


@pytest.mark.parametrize("log_variance", ["bounded", "free"])
@pytest.mark.parametrize("kind", [VDSH, VDSH_S, VDSH_SP])
def test_the_encoder_without_torch_agrees_with_torch(kind, log_variance, corpus_):
    hasher = kind(16, random_state=0, log_variance=log_variance, **QUICK)
    texts, labels = toy_corpus()
    hasher.fit(corpus_.counts, labels)
    documents = Documents(corpus_, "binary", CPU)
    network = training._network(hasher, corpus_, None, 0)
    network.load_state_dict(
        {n: torch.tensor(getattr(hasher, f"{n}_")) for n in network.state_dict()}
    )
    with torch.no_grad():
        batch = next(iter(sparse_batches(in_order(documents), 80)))
        Q = network.posterior(network.hidden(batch))
    mu, sigma = hasher.posterior(corpus_.counts)
    np.testing.assert_allclose(mu, Q.mu.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sigma, np.exp(0.5 * Q.log_variance.numpy()), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(hasher.scores(corpus_.counts), mu)


def test_bounded_variance_is_between_1_and_e(corpus_):
    _, labels = toy_corpus()
    sigma = VDSH(16, random_state=0, **QUICK).fit(corpus_.counts).posterior(corpus_.counts).sigma
    assert (sigma**2 > 1).all()
    assert (sigma**2 < math.e).all()


def test_bit_probabilities_agree_with_draws_from_the_posterior():
    texts = toy_corpus()[0]
    model = TextHasher("vdsh", 16, random_state=0, **QUICK).fit(texts, validation=None).model_
    mu, sigma = model.posterior_of(model.counts(texts[:3]))
    draws = np.random.default_rng(0).normal(mu, sigma, (20_000, *mu.shape))
    found = model.bit_probabilities(texts[:3])
    np.testing.assert_allclose(found, (draws > model.thresholds).mean(axis=0), atol=0.02)


@pytest.mark.parametrize(
    ("labelled", "chosen"),
    [(1.0, "precision"), (0.5, "precision"), (0.2, ""), (0.0, "")],
)
def test_labels_choose_an_epoch_where_there_are_enough(labelled, chosen, corpus_):
    X = corpus_.counts
    labels = some_labels(labelled)
    y, y_validation = (labels[:60], labels[60:]) if labelled else (None, None)
    hasher = VDSH(32, random_state=0, **QUICK)
    hasher.fit(X[:60], y, validation=(X[60:], y_validation))
    assert hasher.selected_on_ == chosen
    if not chosen:
        assert {epoch["validation"] for epoch in hasher.history_} == {None}
        assert hasher.best_epoch_ == len(hasher.history_) - 1


def judged(monkeypatch, X, labels, scores):
    """Train with given scores of each validation document: of the start, and of each epoch."""
    left = iter(scores)
    monkeypatch.setattr(training.Judge, "score", lambda judge, network: next(left))
    settings = QUICK | {"epochs": len(scores) - 1}
    return VDSH(16, random_state=0, **settings).fit(X, labels, validation=(X, labels))


def test_an_epoch_replaces_the_start_only_by_two_standard_errors(corpus_, monkeypatch):
    X, (_, labels) = corpus_.counts, toy_corpus()
    start = np.full(100, 0.5)
    # The mean gain is 0.019 or 0.021 here, and its standard error is 0.01.
    spread = np.repeat([-0.1, 0.1], 50)
    too_little = start + 0.019 + spread
    enough = start + 0.021 + spread
    assert judged(monkeypatch, X, labels, [start, too_little]).best_epoch_ == 0
    assert judged(monkeypatch, X, labels, [start, too_little, enough]).best_epoch_ == 2
    # From then on the better mean wins, by however little.
    slightly_better = enough + 0.001
    scores = [start, enough, slightly_better, enough]
    assert judged(monkeypatch, X, labels, scores).best_epoch_ == 2
    # A small gain of every document is a sure one.
    assert judged(monkeypatch, X, labels, [start, start + 0.001]).best_epoch_ == 1


@pytest.mark.parametrize(("kind", "n_bits", "share"), [(VDSH_S, 32, 0.2), (VDSH, 16, 0.0)])
def test_few_labels_and_short_codes_keep_the_last_epoch(kind, n_bits, share, corpus_):
    X, labels = corpus_.counts, some_labels(share)
    hasher = kind(n_bits, random_state=0, **QUICK)
    hasher.fit(X[:60], labels[:60], validation=(X[60:], labels[60:]))
    assert hasher.selected_on_ == ""
    assert hasher.best_epoch_ == len(hasher.history_) - 1


def test_the_linear_start_is_kept_where_training_does_harm(corpus_, monkeypatch):
    X, (_, labels) = corpus_.counts, toy_corpus()
    scores = [np.full(80, score) for score in (0.9, 0.5, 0.8)]
    harmed = judged(monkeypatch, X, labels, scores)
    still = VDSH(16, random_state=0, **QUICK | {"learning_rate": 1e-12, "epochs": 1})
    still.fit(X, labels)
    assert harmed.best_epoch_ == 0
    assert [row["loss"] is None for row in harmed.history_] == [True, False, False]
    assert (harmed.encode(X) == still.encode(X)).all()
    assert np.abs(harmed.G_ - still.G_).max() > 1e-3  # what decodes its codes was trained


@pytest.mark.parametrize("model", ["vdsh", "vdsh-s"])
def test_the_command_line_fits_where_no_held_out_document_has_a_label(model, vdsh, tmp_path):
    """#16 A2: six labels in 200 documents."""
    texts, labels = toy_corpus(200)
    held_out = np.random.RandomState(0).permutation(200)[:20]
    known = [i for i in range(200) if i not in held_out][:6]
    rows = [
        {"id": str(i), "text": text, "labels": [labels[i]] if i in known else None}
        for i, text in enumerate(texts)
    ]
    (tmp_path / "few.jsonl").write_text("\n".join(map(json.dumps, rows)))
    settings = ("--model", model, "--bits", 8, "--epochs", 1, "--set", "hidden_size=16")
    result = vdsh("fit", "few.jsonl", "--out", "model", *settings, "-q")
    assert result.returncode == 0, result.stderr
    assert "How often half of a held-out document finds its other half" in result.stdout


def test_patience_ends_training_early(corpus_):
    _, labels = toy_corpus()
    settings = QUICK | {"epochs": 100, "patience": 2}
    hasher = VDSH_S(8, random_state=0, **settings)
    hasher.fit(corpus_.counts, labels, validation=(corpus_.counts, labels))
    assert len(hasher.history_) - 1 == hasher.best_epoch_ + 2 < 100


def test_several_samples_and_count_targets_train(corpus_):
    hasher = VDSH(8, random_state=0, n_samples=3, target="counts", **QUICK).fit(corpus_.counts)
    losses = [epoch["loss"] for epoch in hasher.history_[1:]]
    assert losses[-1] < losses[0]


def test_divergence_weight_rises_over_the_warm_up(documents, corpus_):
    hasher = VDSH(16, kl_weight=0.5, kl_warmup=4, **QUICK).fit(corpus_.counts)
    network = network_of(documents, n_labels=0)
    step = training._Step(hasher, network, torch.Generator(), 6)
    seen = []
    step.bound = lambda *a: seen.append(float(a[3].kl)) or L1(*a)
    for batch in sparse_batches(in_order(documents), 14):
        step(batch)
    assert seen == pytest.approx([0.125, 0.25, 0.375, 0.5, 0.5, 0.5])


@pytest.mark.parametrize(
    ("schedule", "expected"), [("linear", [6, 5, 4, 3, 2, 1]), ("constant", [6] * 6)]
)
def test_the_step_size_falls_until_the_last_update(documents, corpus_, schedule, expected):
    hasher = VDSH(16, learning_rate=6e-3, schedule=schedule, **QUICK).fit(corpus_.counts)
    network = network_of(documents, n_labels=0)
    step = training._Step(hasher, network, torch.Generator(), 6)
    rates = []
    for batch in sparse_batches(in_order(documents), 14):
        step(batch)
        rates.append(1e3 * float(step.optimizer.learning_rate))
    assert rates == pytest.approx(expected)


def test_interruption_keeps_the_best_epoch(corpus_):
    def stop_in_third_epoch(report):
        if report.epoch == 3:
            raise KeyboardInterrupt

    hasher = VDSH(8, random_state=0, **QUICK)
    with pytest.warns(UserWarning, match="stopped in epoch 3 of 12; kept the model of epoch 2"):
        hasher.fit(corpus_.counts, progress=stop_in_third_epoch)
    assert hasher.interrupted_
    assert hasher.encode(corpus_.counts).shape == (80, 1)


def test_interruption_in_the_first_epoch_is_not_swallowed(corpus_):
    def stop(report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        VDSH(8, random_state=0, **QUICK).fit(corpus_.counts, progress=stop)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_samples": -1}, "n_samples must be 0 or more. Got -1"),
        ({"log_variance": "big"}, "log_variance must be"),
        ({"start": "good"}, "start must be"),
        ({"schedule": "daily"}, "schedule must be"),
        ({"target": "words"}, "target must be"),
        ({"epochs": 0}, "epochs must be at least 1. Got 0"),
        ({"learning_rate": -1.0}, "learning_rate must be above 0. Got -1.0"),
        ({"learning_rate": float("nan")}, "learning_rate must be above 0. Got nan"),
        ({"n_neighbors": 101}, "n_neighbors must be at most 100. Got 101"),
        ({"word_dropout": 1.0}, "word_dropout must be from 0 to below 1"),
        ({"device": "tpu9"}, "device must be"),
        ({"threshold": "mean"}, "threshold must be"),
        ({"weighting": "bm25"}, "weighting must be"),
    ],
)
def test_bad_settings_get_a_sentence(settings, message, corpus_):
    with pytest.raises(InputError, match=message):
        VDSH(8, **(QUICK | settings)).fit(corpus_.counts)


def test_a_diverging_training_is_said(corpus_):
    with pytest.raises(InputError, match="Training diverged.*Try a smaller learning_rate"):
        VDSH(8, random_state=0, **(QUICK | {"learning_rate": 1e18})).fit(corpus_.counts)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_said(corpus_):
    with pytest.raises(InputError, match="No GPU is usable here. Got device='cuda'"):
        VDSH(8, **(QUICK | {"device": "cuda"})).fit(corpus_.counts)


@pytest.mark.parametrize(
    ("name", "kind"), [("vdsh", VDSH), ("vdsh-s", VDSH_S), ("vdsh-sp", VDSH_SP)]
)
def test_the_paper_preset_names_settings_that_exist(name, kind):
    assert set(PAPER[name]) <= set(kind().get_params())


def test_precision_on_the_device_is_that_of_the_metrics():
    rng = np.random.RandomState(0)
    bits = [rng.randint(0, 2, (n, 16)).astype(np.uint8) for n in (300, 700)]
    labels = [rng.randint(0, 2, (n, 5)).astype(np.uint8) for n in (300, 700)]
    relevant = torch.as_tensor(labels[0] @ labels[1].T > 0)
    counts = tally(*(torch.as_tensor(part) > 0 for part in bits), relevant)
    found = precision_at(counts, 100)
    wanted = precision_at(ranking.tally(pack(bits[0]), labels[0], pack(bits[1]), labels[1]), 100)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
