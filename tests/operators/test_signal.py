"""DFT against NumPy at lengths of every kind, and random numbers against the generator that the standard's reference uses."""

import numpy as np
import pytest

from one_node import OneNode

LENGTHS = [1, 2, 3, 8, 15, 16, 17, 97, 100, 128]


def parts(array):
    return np.stack([array.real, array.imag], axis=-1).astype(np.float64)


@pytest.mark.parametrize("length", LENGTHS)
def test_dft(tmp_path, length):
    x = np.random.default_rng(length).normal(size=(2, 20, 3, 2))
    answer = parts(np.fft.fft(x[..., 0] + 1j * x[..., 1], n=length, axis=1))
    constants = {1: np.array(length, np.int64), 2: np.array(1, np.int64)}
    OneNode("DFT", [x], version=20, constants=constants).check(tmp_path, [answer], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("length", LENGTHS)
def test_inverse_of_half_a_spectrum(tmp_path, length):
    x = np.random.default_rng(length).normal(size=(3, 20, 2))
    answer = np.fft.irfft(x[..., 0] + 1j * x[..., 1], n=length, axis=1)[..., None]
    node = OneNode("DFT", [x], version=20, constants={1: np.array(length, np.int64)}, inverse=1, onesided=1)
    node.check(tmp_path, [answer], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(2, 50), (2, 50, 1)], ids=["as_torch_exports", "as_the_standard_has_it"])
def test_stft_of_real_signals(tmp_path, shape):
    x, window = np.random.default_rng(1).normal(size=shape), np.hanning(16)
    frames = np.lib.stride_tricks.sliding_window_view(x.reshape(2, 50), 16, axis=1)[:, ::4]
    answer = parts(np.fft.rfft(frames * window, axis=-1))
    constants = {1: np.array(4, np.int64), 2: window, 3: np.array(16, np.int64)}
    OneNode("STFT", [x], version=17, constants=constants).check(tmp_path, [answer], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("op", "attributes", "draw"), [
    ("RandomUniform", {"low": 2.0, "high": 5.0}, lambda state: state.uniform(2, 5, (3, 5))),
    ("RandomNormal", {"mean": 1.0, "scale": 3.0}, lambda state: state.normal(1, 3, (3, 5))),
])
def test_seeds_are_those_of_numpy(tmp_path, op, attributes, draw):
    answer = draw(np.random.RandomState(42)).astype(np.float32)
    OneNode(op, [], shape=[3, 5], seed=42.0, **attributes).check(tmp_path, [answer], rtol=1e-6)


def test_bernoulli_draws_as_numpy_does(tmp_path):
    p = np.random.default_rng(0).random((4, 50))
    OneNode("Bernoulli", [p], seed=7.0).check(tmp_path, [np.random.RandomState(7).binomial(1, p).astype(np.float64)])
