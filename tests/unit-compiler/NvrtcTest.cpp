// Owns the tests of compiler/Nvrtc.h: what the log says, and what becomes of bad sources and absent
// libraries.
#include "compiler/Nvrtc.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

using namespace moejit;

TEST_CASE("resources are read from the log of ptxas") {
  ResourceUsage used = parseResources(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'moejit_kernel' for 'sm_90a'\n"
      "ptxas info    : Function properties for moejit_kernel\n"
      "    16 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 16 barriers, 16 bytes cumulative stack size, 1040 "
      "bytes smem\n");
  CHECK(used.registers == 168);
  CHECK(used.stackBytes == 16);
  CHECK(used.spillStoreBytes == 24);
  CHECK(used.spillLoadBytes == 32);
  CHECK(used.staticSharedBytes == 1040);
  CHECK(parseResources("") == ResourceUsage{});
  CHECK(parseResources("registers\n registers\nbytes smem") == ResourceUsage{});
}

TEST_CASE("lines that mean lost speed are warnings, once each") {
  std::vector<std::string> warnings = parsePerformanceWarnings(
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due to x in function 'moejit_kernel'\n"
      "ptxas info    : Used 32 registers\n"
      "ptxas info    : (C7508) setmaxnreg ignored to maintain minimum register requirements\n"
      "ptxas info    : (C7508) setmaxnreg ignored to maintain minimum register requirements\n"
      "ptxas info    : (C7518) something\n");
  REQUIRE(warnings.size() == 3);
  CHECK(warnings[0].find("C7510") != std::string::npos);
  CHECK(warnings[1].find("C7508") != std::string::npos);
  CHECK(warnings[2].find("C7518") != std::string::npos);
}

TEST_CASE("what is kept of a log says nothing of times") {
  CHECK(withoutTimes(
            "ptxas info    : Used 168 registers\nptxas info    : Compile time = 115.957 ms\n") ==
        "ptxas info    : Used 168 registers\n");
  CHECK(withoutTimes("a\nptxas info    : Compile time = 1 ms\nb") == "a\nb");
  CHECK(withoutTimes("ptxas info    : Compile time = 1 ms").empty());
  CHECK(withoutTimes("").empty());
}

TEST_CASE("a library that is not there is Unavailable, and says what was tried") {
  Result<Nvrtc> nvrtc = Nvrtc::open({.libraryPath = "/nowhere/libnvrtc.so"});
  REQUIRE(!nvrtc);
  CHECK(nvrtc.error().code == ErrorCode::Unavailable);
  CHECK(nvrtc.error().text().find("/nowhere/libnvrtc.so") != std::string::npos);
}

TEST_CASE("a library that is no NVRTC is Unavailable, and names the function it lacks") {
  Result<Nvrtc> nvrtc = Nvrtc::open({.libraryPath = "libm.so.6"});
  REQUIRE(!nvrtc);
  CHECK(nvrtc.error().text().find("nvrtcVersion") != std::string::npos);
}

TEST_CASE("compiling") {
  Result<Nvrtc> nvrtc = Nvrtc::open({});
  if (!nvrtc) {
    MESSAGE("skipped: " << nvrtc.error().message);
    return;
  }
  CHECK(nvrtc->versionMajor() >= 12);
  CHECK(nvrtc->version().find('.') != std::string::npos);

  SUBCASE("PTX, cubin, resources and version come from one call") {
    Result<NvrtcOutput> output = nvrtc->compile(
        "extern \"C\" __global__ void moejit_kernel(int *p) { p[threadIdx.x] += 1; }", "sm_90a");
    REQUIRE(output);
    CHECK(output->ptx.find(".target sm_90a") != std::string::npos);
    CHECK(output->ptx.back() == '\n');
    CHECK(output->cubin.substr(1, 3) == "ELF");
    CHECK(output->resources.registers > 0);
    CHECK(output->warnings.empty());
    CHECK(output->versionMajor == nvrtc->versionMajor());
  }
  SUBCASE("a bad source is a CompileError with the log as a note") {
    Result<NvrtcOutput> output = nvrtc->compile("void broken() { nonsense; }", "sm_90a");
    REQUIRE(!output);
    CHECK(output.error().code == ErrorCode::CompileError);
    REQUIRE(output.error().notes.size() == 1);
    CHECK(output.error().notes[0].find("nonsense") != std::string::npos);
  }
  SUBCASE("an unknown architecture or flag is refused") {
    for (std::string arch : {"", "sm_", "compute_90", "sm_90a -I/x", "sm_90\na"}) {
      Result<NvrtcOutput> output = nvrtc->compile("", arch);
      REQUIRE(!output);
      CHECK(output.error().code == ErrorCode::InvalidArgument);
    }
    Result<NvrtcOutput> output = nvrtc->compile("", "sm_12345");
    REQUIRE(!output);
    CHECK(output.error().code == ErrorCode::CompileError);
    REQUIRE(!nvrtc->compile("", "sm_90a", {"--no-such-flag"}));
  }
  SUBCASE("no file is read") {
    REQUIRE(!nvrtc->compile("#include <cuda_runtime.h>\n", "sm_90a"));
    REQUIRE(!nvrtc->compile("#include \"/etc/hostname\"\n", "sm_90a"));
  }
  SUBCASE("threads compile side by side, and equal sources give equal bytes") {
    std::vector<std::string> cubins(4);
    std::vector<std::thread> threads;
    for (std::string &cubin : cubins)
      threads.emplace_back([&] {
        Result<NvrtcOutput> output = nvrtc->compile(
            "extern \"C\" __global__ void moejit_kernel(int *p) { *p = 1; }", "sm_90a");
        if (output)
          cubin = output->cubin;
      });
    for (std::thread &thread : threads)
      thread.join();
    CHECK(!cubins[0].empty());
    CHECK(std::count(cubins.begin(), cubins.end(), cubins[0]) == 4);
  }
}
