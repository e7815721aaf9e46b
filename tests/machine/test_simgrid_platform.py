"""Platform files of SimGrid as others write them: power, routers, lines of what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from avial_lab.machine.platform import Platform
from avial_lab.machine.simgrid_platform import PlatformError, read_platform

HEAD = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
"""


def _read(tmp_path: Path, body: str) -> Platform:
    path = tmp_path / "p.xml"
    path.write_text(f"{HEAD}{body}</platform>", encoding="utf-8")
    return read_platform(path).speeds


DOGBONE = """<zone id="z" routing="{routing}">
  <host id="a" speed="100.0Mf,50.0Mf, 20.0Mf" pstate="1"/><host id="b" speed="1Gf" core="4"/>
  <router id="r"/><router id="s"/>
  <link id="ar" bandwidth="10MBps" latency="1ms"/>
  <link id="rs" bandwidth="1MBps" latency="10ms" sharing_policy="SPLITDUPLEX"/>
  <link id="sb" bandwidth="10MBps" latency="2ms"/>
  <route src="a" dst="r"><link_ctn id="ar"/></route>
  <route src="r" dst="s"><link_ctn id="rs" direction="UP"/></route>
  <route src="s" dst="b"><link_ctn id="sb"/></route>
</zone>"""


@pytest.mark.parametrize("routing", ["Floyd", "Dijkstra", "DijkstraCache"])
def test_ways_lead_over_routers(tmp_path: Path, routing: str) -> None:
    platform = _read(tmp_path, DOGBONE.format(routing=routing))
    assert platform.hops("a", "b") == (("ar", False), ("rs", False), ("sb", False))
    # In the other direction of a link whose directions do not slow each other.
    assert platform.hops("b", "a") == (("sb", True), ("rs", True), ("ar", True))
    assert [node.core_flops_per_s for node in platform.nodes] == [50e6, 1e9]


def test_ways_are_the_shortest(tmp_path: Path) -> None:
    """Two links directly, or one and none over c."""
    hosts = "".join(f'<host id="{name}" speed="1Gf"/>' for name in "abc")
    links = "".join(f'<link id="l{k}" bandwidth="1GBps" latency="1us"/>' for k in range(4))
    platform = _read(
        tmp_path,
        f"""<zone id="z" routing="Floyd">{hosts}{links}
        <route src="a" dst="b"><link_ctn id="l0"/><link_ctn id="l1"/><link_ctn id="l2"/></route>
        <route src="a" dst="c"><link_ctn id="l3"/></route>
        <route src="c" dst="b" symmetrical="NO"><link_ctn id="l2"/></route></zone>""",
    )
    assert platform.hops("a", "b") == (("l3", False), ("l2", False))
    assert [name for name, _ in platform.hops("b", "c") or ()] == ["l2", "l1", "l0", "l3"]


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ('<zone id="z" routing="Vivaldi">\n</zone>', 4, "routed by 'Vivaldi'"),
        ('<zone id="z" routing="Full">\n<peer id="p"/></zone>', 5, "<peer> is not known"),
        ('<zone id="z">\n\n<host id="a" speed="1Gf" state_file="f"/></zone>', 6, "changes over"),
        ('<zone id="z">\n<host id="a" speed="1Gf"\n pstate="2"/></zone>', 5, "in state 2 of 1"),
        ('<zone id="z">\n<host id="a" speed="fast"/></zone>', 5, "<host> speed"),
        ('<zone id="z"><host id="a" speed="1Gf"/>\n<route src="a" dst="b"/></zone>', 5, "to 'b'"),
        ('<zone id="z">\n<zoneRoute src="a" dst="b"/></zone>', 5, "<zoneRoute> is not known"),
        ('<zone id="z">\n<host></zone>', 5, "is not XML: mismatched tag"),
    ],
)
def test_what_is_wrong_is_told_at_its_line(
    tmp_path: Path, body: str, line: int, message: str
) -> None:
    with pytest.raises(PlatformError) as caught:
        _read(tmp_path, body)
    assert message in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.line == line
