// GEMMs of a rank, and the kernels that serve them.
#include "tests/checkpoint/Models.h"
#include "tools/checkpoint/Check.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace moejit;
using namespace moejit::checkpoint;

namespace {

std::vector<ExpertGemm> gemmsOf(const Checkpoint &model, Parallelism split,
                                int64_t maskedRows = 0) {
  GemmOptions options;
  options.maskedRows = maskedRows;
  Result<std::vector<ExpertGemm>> gemms = expertGemms(model, split, options);
  REQUIRE_MESSAGE(bool(gemms), (gemms ? "" : gemms.error().text()));
  return *gemms;
}

const ExpertLaunch &launchOf(const ExpertGemm &gemm, Dispatch dispatch, Input input = Input::Fp8,
                             int64_t rank = 0) {
  for (const ExpertLaunch &launch : gemm.launches)
    if (launch.dispatch == dispatch && launch.input == input &&
        std::count(launch.ranks.begin(), launch.ranks.end(), rank))
      return launch;
  FAIL("no such launch");
  return gemm.launches.front();
}

} // namespace

TEST_CASE("shapes and scales of each scheme") {
  std::vector<ExpertGemm> gemms = gemmsOf(modelOf(fp8Block()), {2, 4});
  REQUIRE(gemms.size() == 2);
  CHECK(gemms[0].projection == "gate_up");
  CHECK(gemms[0].n == 1024);
  CHECK(gemms[0].k == 2048);
  CHECK(gemms[0].experts == 2);
  CHECK(gemms[1].n == 2048);
  CHECK(gemms[1].k == 512);
  const Spec &grouped = launchOf(gemms[0], Dispatch::Grouped).spec;
  CHECK(scaleShape(grouped.wScales, wShape(grouped), 2) == std::vector<int64_t>{2, 8, 16});
  CHECK(grouped.numExperts == 2);
  const Spec &batched = launchOf(gemms[0], Dispatch::Batched).spec;
  CHECK(batched.expertMapSize == 8); // ids are global where experts are split
  CHECK(launchOf(gemmsOf(modelOf(fp8Block()), {1, 1})[0], Dispatch::Batched).spec.expertMapSize ==
        0);
  CHECK(launchOf(gemms[1], Dispatch::Eager).spec.numExperts == 1);
  CHECK(launchOf(gemms[1], Dispatch::Grouped, Input::Bf16).spec.quantizeFrom == ElementType::BF16);
  CHECK(launchOf(gemmsOf(modelOf(fp8Block()), {1, 1}, 64)[0], Dispatch::Masked).spec.maxRows == 64);
  for (const ExpertGemm &gemm : gemms)
    for (const ExpertLaunch &launch : gemm.launches)
      CHECK_MESSAGE(launch.violations.empty(), canonicalText(launch.spec));

  ExpertGemm tensor = gemmsOf(modelOf(fp8Tensor("static")), {1, 1})[0];
  const Spec &ownScales = launchOf(tensor, Dispatch::Grouped).spec;
  CHECK(ownScales.wScales.parts == 2); // gate and up have a scale each
  CHECK(ownScales.xScales.granule[0] == Granule::expert());
  CHECK(launchOf(tensor, Dispatch::Grouped).violations.empty());
  CHECK(launchOf(tensor, Dispatch::Batched).violations.front().ruleId == "MJ001");
  for (const ExpertLaunch &launch : tensor.launches)
    CHECK(launch.input == Input::Fp8); // static scales are given
  ExpertGemm channel = gemmsOf(modelOf(compressed("\"strategy\": \"channel\"",
                                                  "\"strategy\": \"token\", \"dynamic\": true")),
                               {1, 1})[1];
  const Spec &rows = launchOf(channel, Dispatch::Grouped).spec;
  CHECK(rows.wScales.granule ==
        std::vector<Granule>{Granule::of(1), Granule::of(1), Granule::whole()});
}

TEST_CASE("ranks that begin inside a block have kernels of their own, and all of them are legal") {
  for (int64_t intermediate : {192, 640, 768, 1408})
    for (int64_t tp : {1, 2, 4, 8}) {
      if (intermediate % (16 * tp) != 0)
        continue;
      for (const ExpertGemm &gemm : gemmsOf(modelOf(fp8Block(), intermediate), {tp, 1}))
        for (Dispatch dispatch : {Dispatch::Eager, Dispatch::Batched, Dispatch::Grouped}) {
          std::set<int64_t> ranks;
          for (const ExpertLaunch &launch : gemm.launches) {
            if (launch.dispatch != dispatch || launch.input != Input::Fp8)
              continue;
            CHECK_MESSAGE(launch.violations.empty(), canonicalText(launch.spec));
            for (int64_t rank : launch.ranks) {
              CHECK(ranks.insert(rank).second);
              bool isDown = gemm.projection == "down";
              int64_t phase = rank * (intermediate / tp) % 128;
              const ScaleLayout &layout = launch.spec.wScales;
              size_t dimension = layout.granule.size() - (isDown ? 1 : 2);
              CHECK(layout.phaseAt(dimension) == phase);
            }
          }
          CHECK(int64_t(ranks.size()) == tp);
        }
    }
}

TEST_CASE("splits that do not divide say which do") {
  Checkpoint model = modelOf(fp8Block(), 640, "\"n_shared_experts\": 1, ");
  Result<std::vector<ExpertGemm>> tp = expertGemms(model, {3, 1});
  REQUIRE(!tp);
  CHECK(tp.error().message.find("640") != std::string::npos);
  CHECK(tp.error().notes[0].find("1, 2, 4, 5, 8") != std::string::npos);
  Result<std::vector<ExpertGemm>> ep = expertGemms(model, {1, 3});
  REQUIRE(!ep);
  CHECK(ep.error().notes[0].find("1, 2, 4, 8") != std::string::npos);
  CHECK(!expertGemms(model, {0, 1}));
  CHECK(!expertGemms(model, {1, int64_t(1) << 40}));
  std::vector<ExpertGemm> gemms = gemmsOf(model, {2, 1});
  REQUIRE(gemms.size() == 4);
  CHECK(gemms[2].projection == "shared gate_up");
  for (const ExpertLaunch &launch : gemms[2].launches)
    CHECK(launch.dispatch == Dispatch::Eager);
  CheckOptions options;
  options.split = {3, 1};
  Result<Check> refused = check(model, options);
  REQUIRE(bool(refused));
  CHECK(refused->splitProblem);
}

TEST_CASE("schemes without a layout have no launches, and say why") {
  ExpertGemm none = gemmsOf(modelOf(compressed("\"strategy\": \"channel\"",
                                               "\"strategy\": \"channel\", \"dynamic\": false")),
                            {1, 1})[0];
  CHECK(none.launches.empty());
  CHECK(none.why.find("\"channel\"") != std::string::npos);
  ExpertGemm fixed = gemmsOf(modelOf(compressed("\"strategy\": \"channel\"",
                                                "\"strategy\": \"token\", \"dynamic\": false")),
                             {1, 1})[0];
  CHECK(launchOf(fixed, Dispatch::Grouped).violations.front().ruleId == "MJ002");
}

TEST_CASE("folders and files are found") {
  Folder folder;
  folder.write("a/config.json", configText(fp8Block()));
  folder.write("b/config.json", configText(""));
  folder.write("c_config.json", configText(""));
  folder.write("c_hf_quant_config.json", "{\"quantization\": {\"quant_algo\": \"FP8\"}}");
  folder.write("readme.txt", "no configuration");
  Result<std::vector<Checkpoint>> all = readCheckpoints(folder.path);
  REQUIRE_MESSAGE(bool(all), (all ? "" : all.error().text()));
  REQUIRE(all->size() == 3);
  CHECK((*all)[0].needsFp8());
  CHECK(!(*all)[1].needsFp8());
  CHECK((*all)[2].method == Method::ModelOpt);
  CHECK((*all)[2].needsFp8());
  CHECK(readCheckpoints(folder.path + "/a")->size() == 1);
  CHECK(readCheckpoints(folder.path + "/a/config.json")->size() == 1);
  CHECK(readCheckpoints(folder.path + "/none").error().code == ErrorCode::IoError);
  Folder empty;
  CHECK(readCheckpoints(empty.path).error().code == ErrorCode::InvalidArgument);
  folder.write("b/config.json", "{");
  Result<std::vector<Checkpoint>> broken = readCheckpoints(folder.path);
  REQUIRE(!broken);
  CHECK(broken.error().message.find("b/config.json") != std::string::npos);
}
