"""Einsum against NumPy: every way in which labels can be kept, shared, summed, repeated and broadcast."""

import numpy as np
import pytest

from one_node import OneNode

CASES = [
    ("ij,jk->ik", (3, 4), (4, 5)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("bhqk,bkhd->bqhd", (2, 3, 4, 6), (2, 6, 3, 5)),
    ("i,j->ij", (3,), (4,)),
    ("i,i", (4,), (4,)),
    ("ij", (3, 4)),
    ("ba", (3, 4)),
    ("ii->i", (4, 4)),
    ("iij->ji", (3, 3, 4)),
    ("ii", (4, 4)),
    ("ij->", (3, 4)),
    ("...ij->...ji", (2, 3, 4, 5)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 6)),
    ("...,...->...", (2, 3), (3,)),
    ("i...,i...->...", (4, 2, 3), (4, 1, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("i,j,k->", (3,), (4,), (5,)),
    ("ab,bc,ac->abc", (2, 3), (3, 4), (2, 4)),
    ("ij,ij,ij->i", (3, 4), (3, 4), (3, 4)),
    ("ai,aj,ak->ijk", (5, 2), (5, 3), (5, 4)),
    ("ij,kj->ik", (0, 4), (3, 4)),
    ("ij,jk->ik", (2, 0), (0, 3)),
    ("Ab,bA->A", (3, 4), (4, 3)),
]


@pytest.mark.parametrize(("equation", "shapes"), [(case[0], case[1:]) for case in CASES], ids=str)
def test_einsum(tmp_path, equation, shapes):
    rng = np.random.default_rng(1)
    operands = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    answer = np.einsum(equation, *[operand.astype(np.float64) for operand in operands]).astype(np.float32)
    OneNode("Einsum", operands, equation=equation).check(tmp_path, [np.asarray(answer)])


@pytest.mark.parametrize(("equation", "says"), [
    ("ij,jk->ik", "has 2 terms, the node has 1"), ("ijk->i", "names 3 axes, its operand has 2"), ("ij->ii", "names 'i' twice"),
    ("ij->k", "names 'k', no operand does"), ("i1->i", "has '1'"),
])
def test_einsum_refuses(tmp_path, equation, says):
    assert says in OneNode("Einsum", [np.zeros((2, 3), np.float32)], equation=equation).refusal(tmp_path)
