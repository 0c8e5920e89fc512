// A roofline plot as SVG: arithmetic intensity against speed, both logarithmic, under two ceilings.
#pragma once

#include <string>
#include <vector>

namespace moejit::tool {

struct RooflinePoint {
  std::string series;   ///< points of a series have one colour and are joined
  std::string label;    ///< beside the point: rows an expert
  double intensity = 0; ///< operations a byte of least memory traffic
  double teraflops = 0;
};

struct Roofline {
  std::string title, subtitle;
  double gigabytesPerSecond = 0; ///< the memory ceiling
  std::string memoryText;        ///< how it was measured
  double teraflops = 0;          ///< the compute ceiling; 0: none is drawn
  std::string computeText;
  std::vector<RooflinePoint> points;
};

/// The SVG text of `roofline`; without positive points, axes and ceilings alone.
std::string rooflineSvg(const Roofline &roofline);

} // namespace moejit::tool
