"""The list of throw sites is the sources': a new refusal needs a line, with a case or a reason."""

from __future__ import annotations

import pytest
from test_check_equals_train import CASES
from throw_sites import ROOT, all_sites, read_list, reasons, sites_of


def test_every_site_has_a_line() -> None:
    listed = read_list()
    missing = [f"{site.path}:{site.line}: {site.text}" for site in all_sites() if site.key not in listed]
    assert not missing, "say in throw_sites.txt which planted fault reaches them, or why none can"


def test_every_line_has_a_site() -> None:
    found = {site.key for site in all_sites()}
    assert not [key for key in read_list() if key not in found]


def test_every_case_is_planted() -> None:
    unknown = {name for entry in read_list().values() for name in entry.cases} - set(CASES)
    assert not unknown


def test_every_reason_is_explained() -> None:
    known = reasons()
    assert not [entry.reason for entry in read_list().values() if not entry.cases and entry.reason.split(":")[0] not in known]


# Both put their text around one that comes from elsewhere: another site's, or the program sdtune-faces.
TALKING_RELAYS = ["model/options/field.cpp:  (got  ... nothing ... ; allowed: ",
                  "train/data/face_program.cpp: error ... cannot be used"]


def test_a_relay_says_nothing_of_its_own() -> None:
    talking = [site.key for site in all_sites()
               if read_list()[site.key].reason == "relay" and any(" " in text.strip() for text in site.literals)]
    assert talking == TALKING_RELAYS


SOURCE = '''
#include "x.h"
// throw ConfigError("a", "in a comment");
void check(std::vector<Problem>& problems) {
  if (bad) throw ConfigError(name, "the first; with a semicolon " + text +
                                       " and " "more");
  problems.push_back({"where", "the second", ""});
  files.push_back({path, "no problem"});
  object.fail("key", "the third");
  throw;
}
std::vector<Problem> faults(const Path& path) {
  if (!exists(path)) return {{path.string(), "the fourth", ""}};
  return {};
}
'''


@pytest.mark.parametrize("text", ["the first; with a semicolon  ...  and more", "where ... the second", "the third",
                                  "the fourth"])
def test_scanner_finds(text: str) -> None:
    assert text in [site.text for site in sites_of("x.cpp", SOURCE)]


def test_scanner_finds_nothing_else() -> None:
    assert len(sites_of("x.cpp", SOURCE)) == 4
    assert len(sites_of("x.cpp", SOURCE.replace("// throw", "throw"))) == 5


def test_list_is_of_this_tree() -> None:
    assert all((ROOT / site.path).is_file() for site in all_sites())
