"""Routers that share their rollouts through etcd."""

import contextlib

from etcd import Cluster
from router_group import Group


class EtcdGroup(Group):
    """Each router has its own way to etcd."""

    def __init__(self, folder, etcd, backends, stack, **of_service):
        self.etcd = etcd
        self.ways = {name: etcd.way() for name in "abc"}
        super().__init__(folder, backends, stack, **of_service)

    def shared(self, name, **options):
        return {"etcd": {"endpoints": self.ways[name].urls, **options}}


@contextlib.contextmanager
def clusters_in(folders):
    """A function: etcd, whole and empty. Its members need two seconds to elect a leader, so a test gets those of the test before, unless that broke them."""
    with contextlib.ExitStack() as stack:
        running = []

        def cluster():
            if not running or not running[-1].cleared():
                stack.close()
                running.append(stack.enter_context(Cluster(folders.mktemp("cluster"))))
            return running[-1]
        yield cluster
