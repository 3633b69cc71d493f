"""Random decision trees as attributes of TreeEnsembleClassifier and TreeEnsembleRegressor."""

import numpy as np


class Trees:
    """`count` trees of at most `depth` levels over `features`; leaves vote for `votes`, or for some of `targets` where that is None."""

    def __init__(self, count, depth, features, targets, seed=0, modes=("BRANCH_LEQ",), votes=None, negative=False, missing=False):
        self.rng, self.depth, self.features, self.targets = np.random.default_rng(seed), depth, features, targets
        self.modes, self.votes, self.negative, self.count = modes, votes, negative, count
        self.nodes = {key: [] for key in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")}
        self.leaves = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}
        if missing:
            self.nodes["missing_value_tracks_true"] = []
        for tree in range(count):
            self.size = 0
            self.grow(tree, depth)

    def grow(self, tree, levels):
        node, place = self.size, len(self.nodes["treeids"])
        self.size += 1
        fresh = {"treeids": tree, "nodeids": node, "featureids": int(self.rng.integers(self.features)),
                 "modes": str(self.rng.choice(self.modes)), "values": float(np.float32(self.rng.normal())),
                 "truenodeids": 0, "falsenodeids": 0, "missing_value_tracks_true": int(self.rng.integers(2))}
        for key, values in self.nodes.items():
            values.append(fresh[key])
        if levels == 0 or (levels < self.depth and self.rng.random() < 0.2):
            self.nodes["modes"][place] = "LEAF"
            self.vote(tree, node)
        else:
            self.nodes["truenodeids"][place] = self.grow(tree, levels - 1)
            self.nodes["falsenodeids"][place] = self.grow(tree, levels - 1)
        return node

    def vote(self, tree, node):
        some = self.rng.choice(self.targets, size=self.rng.integers(1, self.targets + 1), replace=False)
        for target in some if self.votes is None else self.votes:
            weight = self.rng.normal() if self.negative else self.rng.random() / self.count
            for key, value in (("treeids", tree), ("nodeids", node), ("ids", int(target)), ("weights", float(np.float32(weight)))):
                self.leaves[key].append(value)

    def attributes(self, prefix):
        return {f"nodes_{k}": v for k, v in self.nodes.items()} | {f"{prefix}_{k}": v for k, v in self.leaves.items()}
