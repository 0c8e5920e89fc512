// The bytes of an artifact: a fixed head, then tagged, length-prefixed, little-endian fields under
// one checksum.
#include "runtime/Artifact.h"

#include "runtime/Sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace moejit {
namespace {

// Head: magic (8), format major and minor (4 each), payload length (8), SHA-256 (32). The checksum
// covers the format, the length and the payload, so that no bit of a file can change unseen.
constexpr std::string_view magic("MOEJIT\x1a\n", 8);
constexpr size_t checksumAt = 24;
constexpr size_t headBytes = checksumAt + 32;

/// Tags ascend in a file; a later minor format may add tags and lengthen records, never change
/// them. Format 2.1 has flags at the end of Launch.
enum class Tag : uint32_t {
  Spec = 1,
  LookupKey,
  BuildKey,
  Arch,
  PlanText,
  NvrtcVersion,
  MinDriver,
  Entry,
  Grid,
  Launch,
  TensorMaps,
  Parameters,
  Resources,
  Cubin,
  Ptx,
  Source,
  CompileLog,
  Workspace,
};
constexpr uint32_t lastTag = uint32_t(Tag::Workspace);

/// Flags of a launch, bits of one word. Unknown ones are of later formats.
constexpr uint32_t cleansWorkspaceFlag = 1, dependentLaunchFlag = 2;
constexpr uint32_t knownFlags = cleansWorkspaceFlag | dependentLaunchFlag;
constexpr uint32_t flagsMinor = 1; ///< the format that brought them

class Writer {
public:
  template <typename T> void number(T value) {
    auto bits = uint64_t(value);
    for (size_t i = 0; i < sizeof(T); ++i)
      bytes += char(bits >> (8 * i));
  }
  void text(std::string_view value) {
    number(uint64_t(value.size()));
    bytes += value;
  }
  void field(Tag tag, std::string_view value) {
    number(uint32_t(tag));
    text(value);
  }
  std::string bytes;
};

/// Reads past the end give zeros and set `failed`; nothing is read out of bounds.
class Reader {
public:
  explicit Reader(std::string_view bytes) : rest(bytes) {}

  template <typename T> T number() {
    if (rest.size() < sizeof(T)) {
      failed = true;
      rest = {};
      return T(0);
    }
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof(T); ++i)
      bits |= uint64_t(uint8_t(rest[i])) << (8 * i);
    rest.remove_prefix(sizeof(T));
    return T(bits);
  }
  std::string_view text() {
    auto length = number<uint64_t>();
    if (length > rest.size()) {
      failed = true;
      rest = {};
      return {};
    }
    std::string_view value = rest.substr(0, size_t(length));
    rest.remove_prefix(size_t(length));
    return value;
  }
  template <typename E> E enumerator(E last) {
    auto value = number<uint8_t>();
    if (value > uint8_t(last)) {
      failed = true;
      return E(0);
    }
    return E(value);
  }
  /// A count of records of at least 8 bytes each; more than the bytes can hold is damage, found
  /// before any allocation.
  size_t count() {
    auto value = number<uint32_t>();
    if (value > rest.size() / 8) {
      failed = true;
      return 0;
    }
    return value;
  }

  std::string_view rest;
  bool failed = false;
};

void writeValue(Writer &writer, const LaunchValue &value) {
  Writer record;
  record.number(uint8_t(value.kind));
  record.number(value.constant);
  record.number(uint8_t(value.operand));
  writer.text(record.bytes);
}

LaunchValue readValue(Reader &reader) {
  Reader record(reader.text());
  LaunchValue value;
  value.kind = record.enumerator(LaunchValue::Kind::StrideBytes);
  value.constant = record.number<int64_t>();
  value.operand = record.enumerator(lastOperand);
  reader.failed |= record.failed;
  return value;
}

void writeValues(Writer &writer, const std::vector<LaunchValue> &values) {
  writer.number(uint32_t(values.size()));
  for (const LaunchValue &value : values)
    writeValue(writer, value);
}

std::vector<LaunchValue> readValues(Reader &reader) {
  std::vector<LaunchValue> values;
  for (size_t i = 0, count = reader.count(); i < count && !reader.failed; ++i)
    values.push_back(readValue(reader));
  return values;
}

std::string tensorMapsBytes(const std::vector<TensorMapRecipe> &recipes) {
  Writer writer;
  writer.number(uint32_t(recipes.size()));
  for (const TensorMapRecipe &recipe : recipes) {
    Writer record;
    record.number(uint8_t(recipe.operand));
    record.text(elementTypeName(recipe.type));
    writeValues(record, recipe.extents);
    writeValues(record, recipe.strideBytes);
    record.number(uint32_t(recipe.box.size()));
    for (uint32_t extent : recipe.box)
      record.number(uint64_t(extent));
    record.number(uint8_t(recipe.swizzle));
    writer.text(record.bytes);
  }
  return writer.bytes;
}

std::vector<TensorMapRecipe> readTensorMaps(Reader &reader) {
  std::vector<TensorMapRecipe> recipes;
  for (size_t i = 0, count = reader.count(); i < count && !reader.failed; ++i) {
    Reader record(reader.text());
    TensorMapRecipe recipe;
    recipe.operand = record.enumerator(lastOperand);
    std::optional<ElementType> type = parseElementType(record.text());
    recipe.type = type.value_or(ElementType::F8E4M3FN);
    recipe.extents = readValues(record);
    recipe.strideBytes = readValues(record);
    for (size_t j = 0, boxes = record.count(); j < boxes && !record.failed; ++j) {
      auto extent = record.number<uint64_t>();
      record.failed |= extent > std::numeric_limits<uint32_t>::max();
      recipe.box.push_back(uint32_t(extent));
    }
    recipe.swizzle = record.enumerator(Swizzle::B128);
    reader.failed |= record.failed || !type;
    recipes.push_back(std::move(recipe));
  }
  return recipes;
}

std::string parametersBytes(const std::vector<KernelParameter> &parameters) {
  Writer writer;
  writer.number(uint32_t(parameters.size()));
  for (const KernelParameter &parameter : parameters) {
    Writer record;
    record.number(uint8_t(parameter.kind));
    record.number(parameter.recipe);
    record.number(uint8_t(parameter.operand));
    writer.text(record.bytes);
  }
  return writer.bytes;
}

std::vector<KernelParameter> readParameters(Reader &reader) {
  std::vector<KernelParameter> parameters;
  for (size_t i = 0, count = reader.count(); i < count && !reader.failed; ++i) {
    Reader record(reader.text());
    KernelParameter parameter;
    parameter.kind = record.enumerator(KernelParameter::Kind::Stride);
    parameter.recipe = record.number<uint32_t>();
    parameter.operand = record.enumerator(lastOperand);
    reader.failed |= record.failed;
    parameters.push_back(parameter);
  }
  return parameters;
}

std::string workspaceText(const std::vector<WorkspaceRegion> &regions) {
  Writer writer;
  writer.number(uint32_t(regions.size()));
  for (const WorkspaceRegion &region : regions) {
    Writer record;
    record.number(uint8_t(region.operand));
    record.number(region.bytes);
    record.number(region.rowBytes);
    record.number(uint8_t(region.isZeroed));
    writer.text(record.bytes);
  }
  return writer.bytes;
}

std::vector<WorkspaceRegion> readWorkspace(Reader &reader) {
  std::vector<WorkspaceRegion> regions;
  for (size_t i = 0, count = reader.count(); i < count && !reader.failed; ++i) {
    Reader record(reader.text());
    WorkspaceRegion region;
    region.operand = record.enumerator(lastOperand);
    region.bytes = record.number<uint64_t>();
    region.rowBytes = record.number<uint64_t>();
    region.isZeroed = record.enumerator(uint8_t(1)) != 0;
    // Zeroed regions come first and do not grow. With one region an operand, sums of sizes stay in
    // 64 bits.
    bool isSound = isScratch(region.operand) && region.bytes <= WorkspaceRegion::maxBytes &&
                   region.rowBytes <= WorkspaceRegion::maxRowBytes &&
                   (!region.isZeroed ||
                    (region.rowBytes == 0 && (regions.empty() || regions.back().isZeroed)));
    bool isRepeated =
        std::any_of(regions.begin(), regions.end(),
                    [&](const WorkspaceRegion &other) { return other.operand == region.operand; });
    reader.failed |= record.failed || !isSound || isRepeated;
    regions.push_back(region);
  }
  return regions;
}

std::string payloadOf(const Artifact &artifact) {
  const LaunchData &launch = artifact.launch;
  Writer minDriver, grid, numbers, resources, writer;
  minDriver.number(artifact.minDriver);
  for (int64_t value : {launch.grid.tileM, launch.grid.tileN, launch.grid.n, launch.grid.numExperts,
                        launch.grid.blocksPerSm})
    grid.number(value);
  numbers.number(launch.threads);
  numbers.number(launch.cluster);
  numbers.number(launch.sharedBytes);
  numbers.number((launch.cleansWorkspace ? cleansWorkspaceFlag : 0) |
                 (launch.dependentLaunch ? dependentLaunchFlag : 0));
  const ResourceUsage &usage = artifact.resources;
  for (uint32_t value : {usage.registers, usage.spillStoreBytes, usage.spillLoadBytes,
                         usage.stackBytes, usage.staticSharedBytes})
    resources.number(value);

  writer.field(Tag::Spec, canonicalText(artifact.spec));
  writer.field(Tag::LookupKey, artifact.lookupKey);
  writer.field(Tag::BuildKey, artifact.buildKey);
  writer.field(Tag::Arch, artifact.arch);
  writer.field(Tag::PlanText, artifact.planText);
  writer.field(Tag::NvrtcVersion, artifact.nvrtcVersion);
  writer.field(Tag::MinDriver, minDriver.bytes);
  writer.field(Tag::Entry, launch.entry);
  writer.field(Tag::Grid, grid.bytes);
  writer.field(Tag::Launch, numbers.bytes);
  writer.field(Tag::TensorMaps, tensorMapsBytes(launch.tensorMaps));
  writer.field(Tag::Parameters, parametersBytes(launch.parameters));
  writer.field(Tag::Resources, resources.bytes);
  writer.field(Tag::Cubin, artifact.cubin);
  writer.field(Tag::Ptx, artifact.ptx);
  writer.field(Tag::Source, artifact.source);
  writer.field(Tag::CompileLog, artifact.compileLog);
  writer.field(Tag::Workspace, workspaceText(launch.workspace));
  return std::move(writer.bytes);
}

std::string checksum(std::string_view format, std::string_view payload) {
  // Two digests, so that a payload of megabytes need not be copied behind the format.
  std::string inner(format);
  for (uint8_t byte : sha256(payload))
    inner += char(byte);
  std::string outer;
  for (uint8_t byte : sha256(inner))
    outer += char(byte);
  return outer;
}

Error damaged(std::string what) {
  return {ErrorCode::ParseError, "the artifact is damaged: " + std::move(what), {}};
}

/// Reads the value of one known field. Returns the name of the field when its bytes are not what
/// they should be. `minor` is the format's.
const char *readField(Tag tag, std::string_view bytes, uint32_t minor, Artifact &artifact) {
  Reader reader(bytes);
  LaunchData &launch = artifact.launch;
  const char *name = nullptr;
  switch (tag) {
  case Tag::Spec: {
    Result<Spec> spec = parseSpec(bytes);
    if (!spec || canonicalText(*spec) != bytes)
      return "spec";
    artifact.spec = std::move(*spec);
    return nullptr;
  }
  case Tag::LookupKey:
    artifact.lookupKey = bytes;
    return nullptr;
  case Tag::BuildKey:
    artifact.buildKey = bytes;
    return nullptr;
  case Tag::Arch:
    artifact.arch = bytes;
    return nullptr;
  case Tag::PlanText:
    artifact.planText = bytes;
    return nullptr;
  case Tag::NvrtcVersion:
    artifact.nvrtcVersion = bytes;
    return nullptr;
  case Tag::Entry:
    launch.entry = bytes;
    return nullptr;
  case Tag::Cubin:
    artifact.cubin = bytes;
    return nullptr;
  case Tag::Ptx:
    artifact.ptx = bytes;
    return nullptr;
  case Tag::Source:
    artifact.source = bytes;
    return nullptr;
  case Tag::CompileLog:
    artifact.compileLog = bytes;
    return nullptr;
  case Tag::MinDriver:
    name = "minimum driver";
    artifact.minDriver = reader.number<uint32_t>();
    break;
  case Tag::Grid:
    name = "grid rule";
    for (int64_t *value : {&launch.grid.tileM, &launch.grid.tileN, &launch.grid.n,
                           &launch.grid.numExperts, &launch.grid.blocksPerSm})
      *value = reader.number<int64_t>();
    break;
  case Tag::Launch:
    name = "launch numbers";
    launch.threads = reader.number<uint32_t>();
    launch.cluster = reader.number<uint32_t>();
    launch.sharedBytes = reader.number<uint32_t>();
    if (minor >= flagsMinor) {
      const auto flags = reader.number<uint32_t>();
      launch.cleansWorkspace = (flags & cleansWorkspaceFlag) != 0;
      launch.dependentLaunch = (flags & dependentLaunchFlag) != 0;
      reader.failed |= minor == Artifact::formatMinor && (flags & ~knownFlags) != 0;
    }
    break;
  case Tag::TensorMaps:
    name = "tensor maps";
    launch.tensorMaps = readTensorMaps(reader);
    break;
  case Tag::Workspace:
    name = "workspace";
    launch.workspace = readWorkspace(reader);
    break;
  case Tag::Parameters:
    name = "parameters";
    launch.parameters = readParameters(reader);
    break;
  case Tag::Resources: {
    name = "resource usage";
    ResourceUsage &usage = artifact.resources;
    for (uint32_t *value : {&usage.registers, &usage.spillStoreBytes, &usage.spillLoadBytes,
                            &usage.stackBytes, &usage.staticSharedBytes})
      *value = reader.number<uint32_t>();
    break;
  }
  }
  const bool mayBeLonger = minor > Artifact::formatMinor;
  return reader.failed || (!reader.rest.empty() && !mayBeLonger) ? name : nullptr;
}

} // namespace

const char *operandName(Operand operand) {
  switch (operand) {
  case Operand::X:
    return "x";
  case Operand::XScales:
    return "xScales";
  case Operand::W:
    return "w";
  case Operand::WScales:
    return "wScales";
  case Operand::Offsets:
    return "offsets";
  case Operand::ExpertIds:
    return "expertIds";
  case Operand::Counts:
    return "counts";
  case Operand::ExpertMap:
    return "expertMap";
  case Operand::Y:
    return "y";
  case Operand::Workspace:
    return "workspace";
  case Operand::Errors:
    return "errors";
  case Operand::Counters:
    return "counters";
  case Operand::XQuantized:
    return "xQuantized";
  case Operand::XQuantizedScales:
    break;
  }
  return "xQuantizedScales";
}

namespace {

/// Bytes of workspace up to the end of the first `count` regions, each begun on its alignment.
uint64_t regionsEnd(const LaunchData &launch, size_t count, int64_t rows) {
  uint64_t end = 0;
  for (size_t i = 0; i < count; ++i) {
    const WorkspaceRegion &region = launch.workspace[i];
    end = (end + WorkspaceRegion::alignBytes - 1) / WorkspaceRegion::alignBytes *
          WorkspaceRegion::alignBytes;
    if (!region.isZeroed)
      end = std::max(end, WorkspaceRegion::unzeroedFrom);
    end += region.bytes + region.rowBytes * uint64_t(rows);
  }
  return end;
}

} // namespace

uint64_t workspaceBytes(const LaunchData &launch, int64_t rows) {
  return regionsEnd(launch, launch.workspace.size(), rows);
}

uint64_t workspaceBytesPerRow(const LaunchData &launch) {
  uint64_t bytes = 0;
  for (const WorkspaceRegion &region : launch.workspace)
    bytes += region.rowBytes;
  return bytes;
}

uint64_t zeroedBytes(const LaunchData &launch) {
  size_t count = 0;
  while (count < launch.workspace.size() && launch.workspace[count].isZeroed)
    ++count;
  return regionsEnd(launch, count, 0);
}

RegionPlace regionPlace(const LaunchData &launch, Operand operand, int64_t rows) {
  for (size_t i = 0; i < launch.workspace.size(); ++i) {
    const WorkspaceRegion &region = launch.workspace[i];
    if (region.operand != operand)
      continue;
    uint64_t bytes = region.bytes + region.rowBytes * uint64_t(rows);
    return {regionsEnd(launch, i + 1, rows) - bytes, bytes};
  }
  return {};
}

std::string serialize(const Artifact &artifact) {
  std::string payload = payloadOf(artifact);
  Writer head;
  head.bytes = magic;
  head.number(Artifact::formatMajor);
  head.number(Artifact::formatMinor);
  head.number(uint64_t(payload.size()));
  std::string sum = checksum(std::string_view(head.bytes).substr(magic.size()), payload);
  return head.bytes + sum + payload;
}

Result<Artifact> deserialize(std::string_view bytes) {
  if (bytes.size() < headBytes)
    return damaged(fmt::format("{} bytes, the head alone has {}", bytes.size(), headBytes));
  if (bytes.substr(0, magic.size()) != magic)
    return damaged("it does not begin with the magic of an artifact");
  Reader head(bytes.substr(magic.size()));
  auto major = head.number<uint32_t>();
  auto minor = head.number<uint32_t>();
  auto length = head.number<uint64_t>();
  if (major != Artifact::formatMajor)
    return Error{ErrorCode::ParseError,
                 fmt::format("the artifact has format {}.{}, this runtime reads format {}", major,
                             minor, Artifact::formatMajor),
                 {"build it again with this version: moejit aot"}};
  std::string_view payload = bytes.substr(headBytes);
  if (length != payload.size())
    return damaged(fmt::format("{} bytes of payload, {} expected", payload.size(), length));
  if (checksum(bytes.substr(magic.size(), checksumAt - magic.size()), payload) !=
      bytes.substr(checksumAt, 32))
    return damaged("the checksum does not match");

  // The checksum is no signature: fields are read as if the writer were hostile.
  bool isNewer = minor > Artifact::formatMinor;
  Artifact artifact;
  Reader reader(payload);
  uint32_t previous = 0;
  while (!reader.rest.empty()) {
    auto tag = reader.number<uint32_t>();
    std::string_view value = reader.text();
    if (reader.failed || tag <= previous)
      return damaged(fmt::format("the field after tag {} is malformed", previous));
    if (tag > previous + 1 && previous < lastTag)
      return damaged(fmt::format("field {} is missing", previous + 1));
    previous = tag;
    if (tag > lastTag) {
      if (!isNewer)
        return damaged(fmt::format("field {} is unknown", tag));
      continue;
    }
    if (const char *name = readField(Tag(tag), value, minor, artifact))
      return damaged(fmt::format("the {} cannot be read", name));
  }
  if (previous < lastTag)
    return damaged(fmt::format("field {} is missing", previous + 1));
  return artifact;
}

} // namespace moejit
