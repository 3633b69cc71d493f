"""Modules of complex numbers, transforms, scans and orders, and two networks that have them: an encoder of sound and a decoder with rotary positions."""

import torch
from torch import nn
from torch.nn import functional as F


def real(*values):
    """Complex numbers as an axis of two, as a file can hold them."""
    return [torch.view_as_real(value.resolve_conj()) if value.is_complex() else value for value in values]


class Complexes(nn.Module):
    """complex.cc, complex_parts.cc."""

    def __init__(self):
        super().__init__()
        self.register_buffer("turn", torch.polar(torch.full((7,), 1.5), torch.linspace(-2, 3, 7)))
        self.register_buffer("grid", torch.randn(5, 7, dtype=torch.complex64).t())  # with the strides of its transposition
        self.mix = nn.Parameter(torch.randn(7, 7, dtype=torch.complex64))

    def forward(self, x, y):
        z, w = torch.view_as_complex(x), torch.complex(y[..., 0], y[..., 1])
        size, angle = z.abs(), torch.angle(z)
        sums = z + w, z - w, torch.rsub(z, w, alpha=2), z + size, size - z, z + 2, z + 1j, torch.add(z, w, alpha=0.5), 1 - z
        products = z * w, z * self.turn, z * size, z * (1 + 2j), 2 * z, z * 2j, torch.addcmul(z, z, w, value=0.5), torch.square(z)
        quotients = z / w, z / (size + 1), 1 / (w + 2), torch.reciprocal(w + 2), size / (z + 3), z / (1 - 1j)
        powers = z**2, z**3, (z + 2) ** 0.5, torch.sqrt(z + 2), torch.exp(z), torch.log(z + 3), torch.sgn(z), torch.exp(1j * angle)
        parts = z.real, z.imag, torch.real(z), z.conj() * w, torch.conj_physical(z), -z, torch.view_as_real(z), torch.angle(y[..., 0]), z.mH
        moved = z.transpose(1, 2), z[:, 1:3], z[:, :, 2], z[..., None], z.flip(1), torch.cat([z, w], 1), torch.stack([z, w], -1), z.reshape(-1, 35), z.roll(2, 1), z.repeat(1, 2, 1)
        rows = z.unbind(1)[0], z.split(2, 1)[1], z.chunk(2, 2)[0], z.flatten(1), z.unsqueeze(1).expand(-1, 3, -1, -1), z.index_select(1, torch.tensor([3, 0])), z[:, torch.tensor([1, 4])], F.pad(z, (1, 2))
        sums_along = z.sum(1), z.mean(2), z.sum(), z.cumsum(1), torch.where(size > 0.5, z, w), torch.where(size > 0.5, z, 0), z.masked_fill(size > 0.5, 0), torch.tril(z), torch.diff(z)
        matrices = z @ self.mix, torch.matmul(z, w.transpose(1, 2)), torch.bmm(z, w.mT), torch.einsum("bij,jk->bik", z, self.mix), torch.einsum("bij,bij->b", z, w), z @ self.grid, size.to(torch.complex64) @ self.mix, torch.outer(z[0, 0], w[0, 1])
        whole = torch.zeros_like(z) + w, torch.ones(3, dtype=torch.complex64) + z[:, :, :3], torch.full((7,), 1 + 2j) * z, z.to(torch.complex128).real.float(), self.mix + z[:, :1]
        written = z.clone()
        written[:, 1] = w[:, 2]
        written *= self.turn
        return real(size, angle, *sums, *products, *quotients, *powers, *parts, *moved, *rows, *sums_along, *matrices, *whole, written)


class Fourier(nn.Module):
    """fourier.cc."""

    def forward(self, x, z):
        c, f = torch.view_as_complex(z), torch.fft
        half, plane = f.rfft(x), f.rfft2(x)
        lines = half, f.rfft(x, n=6), f.rfft(x, n=15, dim=1), f.fft(x), f.fft(c), f.fft(c, dim=1, norm="ortho"), f.ifft(c), f.ifft(c, n=4, norm="forward"), f.rfft(x, norm="ortho"), f.rfft(x, norm="forward")
        back = f.irfft(half), f.irfft(half, n=9), f.irfft(half, n=4, norm="forward"), f.irfft(c, dim=1, norm="ortho"), f.hfft(c), f.hfft(c, n=7, norm="ortho"), f.ihfft(x), f.ihfft(x, norm="forward"), f.irfft(x)
        planes = plane, f.irfft2(plane), f.irfft2(plane, s=(5, 9)), f.fft2(x), f.fft2(c, norm="ortho"), f.ifft2(c), f.fftn(x), f.fftn(c, dim=(1,)), f.ifftn(c, s=(4, 3)), f.rfftn(x, dim=(2, 1)), f.irfftn(plane, s=(6, 8), dim=(1, 2), norm="forward")
        shifted = f.fftshift(x, dim=(1, 2)), f.ifftshift(x, dim=2), f.fftshift(c, dim=1), x[:, 0] * f.fftfreq(8, 0.5), x[:, 0, :5] * f.rfftfreq(8), x[:, 0, :7] * f.fftfreq(7)
        return real(*lines, *back, *planes, *shifted)


class Signals(nn.Module):
    """signal.cc."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(32))
        self.register_buffer("short", torch.hamming_window(20))

    def forward(self, x, z):
        def spectrum(signal, *sizes, **how):
            return torch.stft(signal, *sizes, return_complex=True, **how)

        plain, odd = spectrum(x, 32, window=self.window), spectrum(x, 24, 10, 20, window=self.short, center=False)
        others = spectrum(x[0], 16, 5, normalized=True), spectrum(x, 16, 4, 12, pad_mode="constant"), spectrum(x, 16, onesided=False), spectrum(torch.view_as_complex(z), 16, center=False)
        back = torch.istft(plain, 32, window=self.window), torch.istft(plain, 32, window=self.window, length=150), torch.istft(plain, 32, window=self.window, length=170)
        more = torch.istft(others[0], 16, 5, normalized=True), torch.istft(spectrum(x, 18, 4, window=torch.ones(18)), 18, 4, window=torch.ones(18)), torch.istft(others[2], 16, onesided=False)
        names = torch.hann_window, torch.hamming_window, torch.blackman_window, torch.bartlett_window, torch.kaiser_window
        windows = [x[:, :12] * each(12) for each in names] + [x[:, :9] * each(9, periodic=False) for each in names]
        numbers = x[:, :9] * torch.hamming_window(9, True, 0.6, 0.4), x[:, :9] * torch.kaiser_window(9, True, 5.0)
        return real(plain, odd, *others, *back, *more, *windows, *numbers)


class Scans(nn.Module):
    """scans.cc."""

    def forward(self, x):
        rough, gaps = (3 * x).round(), torch.sqrt(x + 1)  # equal ones; a NaN here and there
        places = [part.float() for each in (rough.cummax(1), rough.cummin(2), x.cummax(-1), gaps.cummax(1), (4 * x).long().cummin(1)) for part in each]
        logs = torch.logcumsumexp(x, 1), torch.logcumsumexp(20 * x, 2), torch.logcumsumexp(x.relu().log(), 1).clamp(min=-9)
        width = x[0, 0].abs().cumsum(0)
        areas = torch.trapezoid(x), torch.trapezoid(x, dx=0.5, dim=1), torch.trapezoid(x, width), torch.trapezoid(x, x.abs().cumsum(1), dim=1), torch.cumulative_trapezoid(x), torch.cumulative_trapezoid(x, width, dim=2)
        return [each.nan_to_num(-7) for each in (*places, *logs, *areas)]


class Orders(nn.Module):
    """order.cc, and the mean of reductions.cc that skips what is no number."""

    def forward(self, x, ids):
        gaps = torch.where(x > 0.8, torch.nan, x)
        middle = torch.nanmedian(gaps), *torch.nanmedian(gaps, 1), *torch.nanmedian(gaps, 2, keepdim=True)
        often = *torch.mode(ids, 1), *torch.mode(ids, 2), *torch.mode(ids, 0, keepdim=True)
        counts = torch.histc(x, 10, -1, 1), torch.histc(x, 7), torch.histc(x, 4, 0, 0.5)
        bounded = torch.renorm(x, 2, 1, 0.8), torch.renorm(x, 1, 2, 1.5)
        means = torch.nanmean(gaps, 1), torch.nanmean(gaps), torch.nanmean(gaps, (1, 2), keepdim=True)
        return [each.float() for each in (*middle, *often, *counts, *bounded, *means)]


class Quantiles(nn.Module):
    """order.cc. torch exports it for other devices than a CPU only: there it does not look at the numbers q (export.py)."""

    def forward(self, x):
        gaps, many = torch.where(x > 0.8, torch.nan, x), torch.tensor([0.1, 0.5, 0.93])
        one = torch.quantile(x, 0.3), torch.quantile(x, 0.3, 1), torch.quantile(x, 0.75, 2, keepdim=True), torch.quantile(x, 0.4, keepdim=True)
        several = torch.quantile(x, many), torch.quantile(x, many, 1), torch.quantile(x, many, 1, keepdim=True), torch.quantile(x, many, keepdim=True)
        kinds = [torch.quantile(x, many, 2, interpolation=how) for how in ("lower", "higher", "nearest", "midpoint")]
        skipping = torch.nanquantile(gaps, 0.3), torch.nanquantile(gaps, many, 1), torch.nanquantile(gaps, 0.6, 2, keepdim=True), torch.quantile(gaps, 0.5, 1).nan_to_num(-7)
        return [*one, *several, *kinds, *skipping, torch.where(x > torch.quantile(x, 0.9, 2, keepdim=True), x, 0)]


class Choices(nn.Module):
    """Less frequent functions of binary.cc, distances.cc, movement.cc, images.cc."""

    def forward(self, x, y, theta):
        gaps, zero = torch.where(x > 0.8, torch.nan, x), torch.where(y > 0, 0.0, -0.0) * x
        numbers = torch.fmax(gaps, y), torch.fmin(y, gaps), torch.heaviside(x.round(), y), torch.copysign(x, zero), torch.signbit(zero).float(), torch.float_power(x.abs(), 1.5).float()
        infinite = torch.isposinf(1 / x.round()).float(), torch.isneginf(-1 / x.round()).float(), torch.special.expit(x), torch.special.logit(torch.sigmoid(x))
        vectors = torch.linalg.cross(x[:, :, :3], y[:, :, 3:6]), torch.cross(x[:, 1:4], y[:, :3], dim=1), torch.linalg.cross(x[:, :, :3], y[0, 0, :3].expand(1, 1, 3)), torch.take(x[0], torch.tensor([[0, 9], [30, 4]]))
        parts = *torch.tensor_split(x, 3, 2), *torch.tensor_split(x, (1, 3), 1), torch.hsplit(x, 5)[3], torch.vsplit(x[0], [2])[1]
        grids = F.affine_grid(theta, [theta.shape[0], 1, 4, 6], align_corners=False), F.affine_grid(theta, [theta.shape[0], 1, 3, 5], align_corners=True)
        return [*(each.nan_to_num(-7) for each in numbers), *infinite, *vectors, *parts, *grids]


class LogMelEncoder(nn.Module):
    """Sound -> features: the spectrogram of Whisper's front end, two convolutions, one layer of a transformer."""

    def __init__(self, frame=64, step=16, bands=20, width=32):
        super().__init__()
        self.frame, self.step = frame, step
        self.register_buffer("window", torch.hann_window(frame))
        edges = torch.linspace(0, frame // 2, bands + 2)
        bins = torch.arange(frame // 2 + 1)[None]
        rising, falling = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None], (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
        self.register_buffer("mel", torch.minimum(rising, falling).clamp(min=0))
        self.first, self.second = nn.Conv1d(bands, width, 3, padding=1), nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True, norm_first=True, activation="gelu")

    def forward(self, sound):
        spectrum = torch.stft(sound, self.frame, self.step, window=self.window, return_complex=True)
        power = spectrum[..., :-1].abs() ** 2
        log = torch.clamp(self.mel @ power, min=1e-10).log10()
        log = torch.maximum(log, log.amax((1, 2), keepdim=True) - 8.0)
        features = F.gelu(self.second(F.gelu(self.first((log + 4.0) / 4.0))))
        return self.layer(features.transpose(1, 2))


class RotaryBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up, self.down = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False), nn.Linear(2 * width, width, bias=False)
        self.before, self.behind = nn.RMSNorm(width), nn.RMSNorm(width)

    def turned(self, x, turns):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turns.view(1, turns.shape[0], 1, -1)).flatten(3).type_as(x)

    def forward(self, x, turns):
        y = self.before(x)
        query, key, value = (part(y).view(*x.shape[:2], self.heads, -1) for part in (self.query, self.key, self.value))
        query, key = self.turned(query, turns), self.turned(key, turns)
        mixed = F.scaled_dot_product_attention(query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        y = self.behind(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class ComplexRotaryDecoder(nn.Module):
    """Tokens -> scores of the next: Llama as its authors wrote it, with positions as complex numbers."""

    def __init__(self, words=128, width=32, heads=4, longest=64):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(RotaryBlock(width, heads) for _ in range(2))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, words, bias=False)
        size = width // heads
        angles = torch.outer(torch.arange(longest).float(), 1.0 / 10000.0 ** (torch.arange(0, size, 2).float() / size))
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def forward(self, ids):
        x, turns = self.words(ids), self.turns[: ids.shape[1]]
        for block in self.blocks:
            x = block(x, turns)
        return self.head(self.norm(x))


BATCH = {0: "batch"}
#        name: (module, {input: (shape, kind, open axes)})
SPECTRA = {
    "complexes": (Complexes, {"x": ([2, 5, 7, 2], "", BATCH), "y": ([2, 5, 7, 2], "", BATCH)}),
    "fourier": (Fourier, {"x": ([2, 6, 8], "", {}), "z": ([2, 6, 8, 2], "", {})}),
    "signals": (Signals, {"x": ([2, 160], "", BATCH), "z": ([2, 40, 2], "", BATCH)}),
    "scans": (Scans, {"x": ([2, 5, 7], "", BATCH)}),
    "orders": (Orders, {"x": ([2, 5, 7], "", {}), "ids": ([2, 5, 7], "<3", {})}),
    "quantiles": (Quantiles, {"x": ([2, 5, 7], "", {})}),
    "choices": (Choices, {"x": ([2, 5, 7], "", BATCH), "y": ([2, 5, 7], "", BATCH), "theta": ([2, 2, 3], "", BATCH)}),
    "log_mel_encoder": (LogMelEncoder, {"sound": ([2, 800], "", BATCH)}),
    "complex_rotary": (ComplexRotaryDecoder, {"ids": ([2, 10], "<128", {0: "batch", 1: "seq"})}),
}
