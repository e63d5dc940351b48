// What `sdtune prove` leaves for people: one JSON, one page, one text on how to send them in.
#pragma once

#include <string>
#include <vector>

#include "train/prove/part_store.h"

namespace sdtune::train {

struct ProveReport {
  Json identity;                  // of base, photos, device
  Json machine;                   // as `doctor --machine --json` says it
  std::string planted_fault;      // of a test; "" for none
  std::vector<PartResult> parts;  // those asked for; unfinished where they are not over

  bool has(PartStatus status) const;
  // "passed", "failed" or "unfinished"; a part that was skipped does not count.
  std::string verdict() const;
};

Json report_json(const ProveReport& report);
// A page that needs no other file; images are those of the parts, below `root`.
std::string report_html(const ProveReport& report, const std::filesystem::path& root);
std::string send_in_text(const ProveReport& report);

// prove.json, prove.html and send_in.txt in the store's folder.
void write_report(FileSystem& files, const PartStore& store, const ProveReport& report);

}  // namespace sdtune::train
