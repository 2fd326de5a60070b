"""An LSTM learns to write Python's manual letter by letter, with one bucket for each range of line lengths.

Lines are padded to the length of their bucket. ``BucketingModule`` binds one graph for each bucket; the graphs share
their weights. The text is that of Python's ``help("for")`` and its other topics, so nothing is downloaded.

    python examples/char_lstm.py
"""

from __future__ import annotations

import math
from collections import Counter
from pydoc_data.topics import topics

import opreg as mx

BUCKETS, BATCH, HIDDEN, EPOCHS = [16, 24, 32], 16, 64, 8
PAD = 0


def read(count: int = 320) -> tuple[list[list[int]], list[str]]:
    """Lines of the manual as lists of letter indices, and the letters."""
    text = "\n".join(topics[name] for name in sorted(topics))
    lines = [line.strip().lower() + "\n" for line in text.split("\n") if 8 < len(line.strip()) < BUCKETS[-1]][:count]
    letters = ["", *sorted(set("".join(lines)))]
    number = {letter: index for index, letter in enumerate(letters)}
    return [[number[letter] for letter in line] for line in lines], letters


def network(letters: int):
    """A function that makes the graph of a bucket: an unrolled LSTM that predicts the next letter at each step."""
    cell = mx.rnn.FusedRNNCell(HIDDEN, num_layers=1, mode="lstm", prefix="lstm_")

    def generate(length: int):
        data, label = mx.sym.var("data"), mx.sym.var("softmax_label")
        embedded = mx.sym.Embedding(data, input_dim=letters, output_dim=32, name="embedding")
        cell.reset()
        outputs, _ = cell.unroll(length, embedded, layout="NTC", merge_outputs=True)
        scores = mx.sym.FullyConnected(mx.sym.reshape(outputs, shape=(-1, HIDDEN)), num_hidden=letters, name="scores")
        output = mx.sym.SoftmaxOutput(scores, mx.sym.reshape(label, shape=(-1,)), use_ignore=True, ignore_label=PAD,
                                      normalization="valid", name="softmax")
        return output, ("data",), ("softmax_label",)

    return generate


def main() -> None:
    mx.random.seed(0)
    lines, letters = read()
    batches = mx.rnn.BucketSentenceIter(lines, BATCH, buckets=BUCKETS, invalid_label=PAD)
    module = mx.mod.BucketingModule(network(len(letters)), default_bucket_key=batches.default_bucket_key)
    metric = mx.metric.Perplexity(ignore_label=PAD)
    module.fit(batches, eval_metric=metric, optimizer="adam", num_epoch=EPOCHS,
               optimizer_params={"learning_rate": 0.01, "clip_gradient": 5.0},
               initializer=mx.init.Xavier(factor_type="in", magnitude=2.34))

    counts = Counter(letter for line in lines for letter in line[1:])
    total = sum(counts.values())
    alone = math.exp(-sum(count / total * math.log(count / total) for count in counts.values()))
    ((_, reached),) = metric.get_name_value()
    print(f"{len(lines)} lines: perplexity {reached:.2f} a letter; how often letters are gives {alone:.2f}")
    assert reached < alone / 2


if __name__ == "__main__":
    main()
