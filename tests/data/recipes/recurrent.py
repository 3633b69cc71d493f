"""RNN, GRU and LSTM with everything that is optional: directions, peepholes, lengths, initial states, clipping, other activations."""

import numpy as np

from .common import build, normal, write as write_fixture

INPUT, HIDDEN = 5, 6


def write(out):
    rng = np.random.default_rng(21)
    text = f"""
    recurrent (float[steps, batch, {INPUT}] x, int32[batch] lengths, float[2, batch, {HIDDEN}] h, float[2, batch, {HIDDEN}] c)
        => (float[steps, 2, batch, {HIDDEN}] lstm, float[2, batch, {HIDDEN}] lstm_h, float[2, batch, {HIDDEN}] lstm_c,
            float[steps, 1, batch, {HIDDEN}] coupled, float[steps, 2, batch, {HIDDEN}] gru, float[2, batch, {HIDDEN}] gru_h,
            float[steps, 1, batch, {HIDDEN}] reset, float[steps, 1, batch, {HIDDEN}] rnn, float[1, batch, {HIDDEN}] rnn_h) {{
      lstm, lstm_h, lstm_c = LSTM<direction: string = "bidirectional", hidden_size: int = {HIDDEN}>
          (x, lstm_w, lstm_r, lstm_b, lengths, h, c, lstm_p)
      coupled = LSTM<direction: string = "reverse", hidden_size: int = {HIDDEN}, clip: float = 0.7,
          activations: strings = ["HardSigmoid", "Softsign", "Tanh"], activation_alpha: floats = [0.3], activation_beta: floats = [0.4]>
          (x, one_w, one_r)
      gru, gru_h = GRU<direction: string = "bidirectional", hidden_size: int = {HIDDEN}, linear_before_reset: int = 1>
          (x, gru_w, gru_r, gru_b, lengths, h)
      reset = GRU<hidden_size: int = {HIDDEN}>(x, gru1_w, gru1_r, gru1_b)
      rnn, rnn_h = RNN<direction: string = "reverse", hidden_size: int = {HIDDEN}, activations: strings = ["LeakyRelu"],
          activation_alpha: floats = [0.1]>(x, rnn_w, rnn_r, rnn_b, lengths)
    }}"""

    def weights(name, directions, gates):
        return {f"{name}_w": normal(rng, directions, gates * HIDDEN, INPUT, scale=0.5),
                f"{name}_r": normal(rng, directions, gates * HIDDEN, HIDDEN, scale=0.5),
                f"{name}_b": normal(rng, directions, 2 * gates * HIDDEN, scale=0.5)}

    constants = {**weights("lstm", 2, 4), **weights("one", 1, 4), **weights("gru", 2, 3), **weights("gru1", 1, 3), **weights("rnn", 1, 1),
                 "lstm_p": normal(rng, 2, 3 * HIDDEN, scale=0.5)}
    del constants["one_b"]
    data_sets = []
    for steps, lengths in ((7, [7, 3, 5]), (1, [1])):
        batch = len(lengths)
        data_sets.append({"x": normal(rng, steps, batch, INPUT), "lengths": np.array(lengths, np.int32),
                          "h": normal(rng, 2, batch, HIDDEN), "c": normal(rng, 2, batch, HIDDEN)})
    write_fixture(out / "recurrent", build(text, constants, opset=18), data_sets)
