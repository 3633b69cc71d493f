"""The dashboard in a real Chromium: what a release engineer sees and clicks while the real router judges a canary."""

import contextlib
import re
import shutil
import socket

import pytest
from playwright.sync_api import expect, sync_playwright

from backends import Faults
from conftest import call, wait_until
from routers import service, spec
from test_admin_access import TOKENS, bearer, write_tokens
from traffic import Traffic

CHROMIUM = shutil.which("chromium")
HOLD = {"setWeight": 25, "until": {"duration": "1h"}}
PATIENCE = 30_000  # ms: passes only where a test fails
expect.set_options(timeout=PATIENCE)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here; deploy/install-deps --tests gets it")


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser):
    """open_page(router, width=1280 ...): the dashboard, live. Fails the test where the page complained or asked anybody else."""
    complaints = []
    with contextlib.ExitStack() as stack:
        def begin(router, at="", **options):
            context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **options})
            stack.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("console", lambda message: complaints.append(message.text) if "Content Security Policy" in message.text else None)
            page.on("request", lambda request: request.url.startswith((router.admin, "data:")) or complaints.append(f"asked {request.url}"))
            page.goto(f"{router.admin}/{at}")
            return page
        yield begin
    assert complaints == []


def badge(page):
    return page.locator("main .badge")


def panel(page, title):
    return page.locator(".panel", has=page.get_by_role("heading", name=title))


def is_live(page):
    expect(page.get_by_role("status")).to_have_text("live")


def command(page, name, reason=""):
    """Clicks the button and confirms."""
    page.get_by_role("button", name=name).click()
    dialog = page.get_by_role("dialog")
    if reason:
        dialog.get_by_label("Reason").fill(reason)
    dialog.get_by_role("button", name=name).click()
    return dialog


# --- watched ------------------------------------------------------------------------------------------------------------------------


IS_DRAWN = re.compile("^M[0-9.,]+L[0-9.,L]+$")  # from one point to another


def curve(page, title):
    return page.locator(".chart", has=page.get_by_role("heading", name=title)).locator("path.line").first


def test_a_rollout_is_watched_to_its_rollback(pair, open_page):
    router, _, canary = pair
    page = open_page(router)
    is_live(page)
    expect(badge(page)).to_have_text("No rollout")
    router.start_rollout(steps=[HOLD])
    with Traffic(router.url, clients=3) as traffic:
        expect(badge(page)).to_contain_text("Progressing")
        expect(panel(page, "Traffic").get_by_role("row", name="2 canary")).to_contain_text("25 %")
        expect(page.locator("main .reason")).to_have_text("step 1 of 1: 25 % for 1h")
        expect(curve(page, "Latency")).to_have_attribute("d", IS_DRAWN)  # a point a second: before the verdict ends it
        canary.faults = Faults(error_rate=1)
        expect(badge(page)).to_contain_text("Rolled back")
        expect(page.locator(".evidence tr.tripped")).to_contain_text("err")
    assert traffic.failures == []
    verdict = router.rollout()
    explained = panel(page, "The verdict, explained")
    expect(explained).to_contain_text(verdict["reason"])
    expect(explained).to_contain_text("more often than its share of the traffic explains?")
    expect(explained.locator(".events .bar.strong")).to_have_count(1)
    audit = panel(page, "Audit log").get_by_role("listitem")
    expect(audit.first).to_contain_text("rolled back")
    expect(audit.first).to_contain_text("router · digits-1")
    expect(audit.last).to_contain_text("started")
    for title in ("Weight", "Evidence against the canary", "Latency", "Errors"):
        expect(curve(page, title)).to_have_attribute("d", IS_DRAWN)
    expect(page.locator(".chart .limit")).to_contain_text("rolls back")
    expect(page).to_have_title("digits: Rolled back · Serin")
    for name in ("Pause", "Abort"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)


def test_who_comes_later_sees_how_it_went(pair, open_page):
    router, _, canary = pair
    canary.faults = Faults(error_rate=1)
    router.start_rollout(steps=[HOLD])
    with Traffic(router.url, clients=3):
        router.wait_for("RolledBack")
        wait_until(lambda: len(call(f"{router.admin}/v1/rollouts/digits/timeline").json["at_ms"]) >= 3, 20, "three points")
    page = open_page(router, at="#digits")
    evidence = page.locator(".chart", has=page.get_by_role("heading", name="Evidence against the canary"))
    expect(evidence.locator("path.line").first).to_have_attribute("d", re.compile("L.*L"))
    expect(evidence.locator(".legend")).to_contain_text("err")
    expect(panel(page, "The verdict, explained")).to_contain_text("serin rollout explain digits-1")


def test_answers_that_differ_are_shown_as_examples(pair, open_page):
    router, stable, canary = pair
    stable.faults, canary.faults = Faults(label=3), Faults(label=7)
    router.start_rollout(steps=[{"shadow": {"percent": 100, "until": {"duration": "1h"}}}, 50], guard={"output": {"maxDisagreement": "50%"}})
    page = open_page(router)
    with Traffic(router.url, clients=2):
        router.wait_for("RolledBack")
    shown = panel(page, "Copied requests")
    expect(shown.get_by_role("row").last).to_contain_text("label 3 score 0.9label 7 score 0.9")
    expect(shown).to_contain_text("answers differ from stable's (100 %)")


def test_services_are_chosen_by_the_address(route, backend, open_page):
    router = route(service(backend("1"), backend("2")), service(backend("1", service="letters"), name="letters"))
    page = open_page(router, at="#letters")
    expect(page.locator("main h2")).to_have_text("letters")
    page.get_by_role("link", name="digits").click()
    expect(page.locator("main h2")).to_have_text("digits")
    page.go_back()
    expect(page.locator("main h2")).to_have_text("letters")
    page.goto(f"{router.admin}/#nope")
    expect(page.locator("main")).to_contain_text("There is no service 'nope'.")


# --- steered ------------------------------------------------------------------------------------------------------------------------


def test_an_abort_is_clicked_confirmed_and_written_down(pair, open_page):
    router = pair[0]
    router.start_rollout(steps=[HOLD])
    page = open_page(router)
    dialog = command(page, "Abort", reason="lunch time")
    expect(dialog).to_have_count(0)
    expect(badge(page)).to_contain_text("Rolled back")
    last = router.history()[-1]
    assert last["event"] == "rolled_back" and "lunch time" in last["detail"] and router.rollout()["cause"] == "abort"
    expect(panel(page, "Audit log").get_by_role("listitem").first).to_contain_text("lunch time")


def test_pause_resume_and_promote(pair, open_page):
    router = pair[0]
    router.start_rollout(steps=[HOLD])
    page = open_page(router)
    command(page, "Pause")
    expect(badge(page)).to_contain_text("Paused")
    expect(page.get_by_role("button", name="Pause")).to_be_disabled()
    command(page, "Resume")
    expect(badge(page)).to_contain_text("Progressing")
    command(page, "Promote")
    expect(badge(page)).to_contain_text("Succeeded")
    expect(panel(page, "Traffic").get_by_role("row", name="2 stable")).to_contain_text("100 %")


def test_nothing_happens_unconfirmed(pair, open_page):
    router = pair[0]
    router.start_rollout(steps=[HOLD])
    page = open_page(router)
    page.get_by_role("button", name="Promote").click()
    expect(page.get_by_role("dialog")).to_contain_text("No further evidence is asked for")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Abort").press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert [entry["event"] for entry in router.history()] == ["started"]


def test_r4_what_somebody_else_changed_meanwhile_is_not_changed_again(pair, open_page):
    router = pair[0]
    router.start_rollout(steps=[HOLD])
    page = open_page(router)
    page.get_by_role("button", name="Promote").click()
    assert router.command("set-weight", {"weight": 1}).status == 200
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Promote").click()
    expect(dialog.get_by_role("alert")).to_contain_text("another client changed it first")
    assert router.rollout()["weight"] == 1


@pytest.fixture
def guarded(route, backend, tmp_path):
    """A router that asks for tokens, with a rollout under way."""
    tokens = tmp_path / "tokens.yaml"
    write_tokens(tokens, TOKENS)
    router = route(service(backend("1"), backend("2")), admin={"listen": "127.0.0.1:0", "tokens": str(tokens)})
    started = wait_until(lambda: call(f"{router.admin}/v1/rollouts", spec(steps=[HOLD]), bearer("admin")), 10, "started")
    assert started.status == 201, started.body
    return router


def sign_in(page, token):
    page.get_by_label("Token of the admin API").fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_a_viewer_sees_everything_and_may_do_nothing(guarded, open_page):
    page = open_page(guarded)
    expect(page.get_by_role("button", name="Abort")).to_have_count(0)
    sign_in(page, "a-token-that-nobody-has-got")
    expect(page.get_by_role("alert")).to_be_visible()
    sign_in(page, TOKENS["viewer"])
    is_live(page)
    expect(page.locator(".who")).to_contain_text("the-viewer viewer")
    expect(badge(page)).to_contain_text("Progressing")
    for name in ("Pause", "Resume", "Promote", "Abort"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
    expect(page.get_by_role("button", name="Abort")).to_have_attribute("title", "the role viewer may not abort")
    refused = page.evaluate("""async () => (await fetch('v1/rollouts/digits:abort', {method: 'POST', body: '{}', headers:
        {'Content-Type': 'application/json', Authorization: 'Bearer ' + sessionStorage.getItem('serin-token')}})).status""")
    assert refused == 403, "whatever the page offers, it is the router that refuses"
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token of the admin API")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0


def test_an_operator_aborts_in_his_own_name_and_does_not_promote(guarded, open_page):
    page = open_page(guarded)
    sign_in(page, TOKENS["operator"])
    is_live(page)
    expect(page.get_by_role("button", name="Promote")).to_be_disabled()
    command(page, "Abort")
    expect(badge(page)).to_contain_text("Rolled back")
    expect(panel(page, "Audit log").get_by_role("listitem").first).to_contain_text("the-operator")
    page.reload()
    is_live(page)
    expect(page.locator(".who")).to_contain_text("the-operator")


# --- by keyboard, by phone, in the dark ---------------------------------------------------------------------------------------------


def test_everything_can_be_done_by_keyboard(pair, open_page):
    router = pair[0]
    router.start_rollout(steps=[HOLD])
    page = open_page(router)
    is_live(page)
    seen = []
    for _ in range(14):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"))
    assert [name for name in ("Pause", "Promote", "Abort") if name not in seen] == []
    assert any(name.startswith("Weight:") for name in seen), "charts are reached, too"
    wait_until(lambda: len(call(f"{router.admin}/v1/rollouts/digits/timeline").json["at_ms"]) >= 3, 20, "three points")
    page.reload()
    chart = page.locator(".chart").first
    chart.get_by_role("img").focus()
    page.keyboard.press("Home")
    expect(chart.locator(".legend")).to_contain_text("after 0 s")
    expect(chart.locator(".cursor")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(chart.locator(".cursor")).to_have_count(0)


@pytest.mark.parametrize("phase", ["Progressing", "RolledBack"])
def test_a_phone_shows_all_of_it_without_scrolling_sideways(pair, open_page, phase):
    router, _, canary = pair
    canary.faults = Faults(error_rate=1 if phase == "RolledBack" else 0)
    router.start_rollout(steps=[HOLD])
    with Traffic(router.url, clients=3):
        if phase == "RolledBack":
            router.wait_for(phase)
        else:
            router.wait_for_answers(50)
    page = open_page(router, viewport={"width": 390, "height": 844}, device_scale_factor=2, has_touch=True, is_mobile=True)
    expect(page.locator(".evidence tbody tr").first).to_be_visible()
    expect(page.locator(".chart svg").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for button in page.locator(".commands button").all():
        assert button.bounding_box()["height"] >= 44, "a thumb must hit it"


CONTRASTS = """() => {
  const luminance = (rgb) => rgb.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = numbers(getComputedStyle(e).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.querySelectorAll('main *, header *, nav *')) {
    const text = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!text || element.closest('button:disabled') || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const ink = numbers(element.closest('svg') ? style.fill : style.color).slice(0, 3);
    const [a, b] = [luminance(ink), luminance(ground(element))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), `${element.className?.baseVal ?? element.className} ${element.textContent.slice(0, 40)}`]);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_in_dark(pair, open_page, scheme):
    router, _, canary = pair
    router.start_rollout(steps=[HOLD])
    page = open_page(router, color_scheme=scheme)
    with Traffic(router.url, clients=3):
        router.wait_for_answers(30)
        expect(page.locator(".chart path.line").first).to_be_visible()
        going = page.evaluate(CONTRASTS)
        canary.faults = Faults(error_rate=1)
        expect(badge(page)).to_contain_text("Rolled back")
    expect(panel(page, "The verdict, explained").locator(".events")).to_be_visible()
    weak = [pair for pair in going + page.evaluate(CONTRASTS) if pair[0] < 4.5]
    assert len(going) > 40 and weak == [], "WCAG AA"
    grounds = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", grounds))) < 200) == (scheme == "dark")


# --- a router that goes and comes ---------------------------------------------------------------------------------------------------


def test_a_lost_connection_is_said_and_recovers_by_itself(route, backend, open_page):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    services = [service(backend("1"), backend("2"))]
    router = route(*services, admin=f"127.0.0.1:{port}")
    wait_until(lambda: router.healthy("2") == 1, 10, "health checked")
    router.start_rollout(steps=[HOLD])
    page = open_page(router)
    is_live(page)
    router.kill()
    expect(page.get_by_role("status")).to_contain_text("connection lost")
    expect(page.get_by_role("button", name="Abort")).to_be_disabled()
    expect(badge(page)).to_contain_text("Progressing")
    again = route(*services, admin=f"127.0.0.1:{port}")
    wait_until(lambda: again.healthy("2") == 1, 10, "health checked")
    assert again.command("pause").status == 200
    is_live(page)
    expect(badge(page)).to_contain_text("Paused")
    expect(page.get_by_role("button", name="Abort")).to_be_enabled()
    command(page, "Abort")
    again.wait_for("RolledBack")
