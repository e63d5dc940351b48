#include "train/resume/replica.h"

#include <gtest/gtest.h>

namespace sdtune::train {
namespace {

const Replica kFirst{{{"unet/config.json", "1"}, {"vae/config.json", "2"}}, {{"a.png", "3"}, {"b.png", "4"}}};

const std::string kOther = "other";  // gcc 12 warns where a literal is assigned to a string

Replica changed(const std::function<void(Replica&)>& change) {
  Replica replica = kFirst;
  change(replica);
  return replica;
}

TEST(Replica, IsTheSameAfterItsWayToAnotherRank) {
  EXPECT_EQ(Replica::from_json(Json::from_cbor(Json::to_cbor(kFirst.to_json()))), kFirst);
  Replica strange = kFirst;
  strange.images.emplace("\xff.png", "5");  // a name that is no UTF-8
  strange.held_out.emplace("v.png", "6");
  EXPECT_EQ(Replica::from_json(Json::from_cbor(Json::to_cbor(strange.to_json()))), strange);
}

TEST(ReplicaDifference, SaysWhatDiffersAndHowMuch) {
  EXPECT_EQ(replica_difference(kFirst, kFirst), "");
  EXPECT_EQ(replica_difference(kFirst, changed([](Replica& replica) { replica.base["vae/config.json"] = kOther; })),
            "another base (1 of 2: vae/config.json)");
  EXPECT_EQ(replica_difference(kFirst, changed([](Replica& replica) {
                                 replica.images.erase("a.png");
                                 for (const char* name : {"c.png", "d.png", "e.png"}) replica.images[name] = kOther;
                               })),
            "other images or captions (4 of 5: a.png, c.png, d.png, ...)");
}

TEST(ReplicaDifference, ListsAllKinds) {
  const Replica other = changed([](Replica& replica) {
    replica.base.clear();
    replica.images["a.png"] = kOther;
    replica.held_out["v.png"] = kOther;
  });
  EXPECT_EQ(replica_difference(kFirst, other),
            "another base (2 of 2: unet/config.json, vae/config.json), other images or captions (1 of 2: a.png), "
            "other held-out photos (1 of 1: v.png)");
}

}  // namespace
}  // namespace sdtune::train
