// Draws by hand: a plot of points, two lines and a legend needs no library.
#include "tools/moejit/Roofline.h"

#include "tools/moejit/Report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace moejit::tool {
namespace {

constexpr double left = 80, top = 70, plotWidth = 720, plotHeight = 470, legendWidth = 250;
constexpr double width = left + plotWidth + legendWidth + 30, height = top + plotHeight + 80;

/// Colours that are told apart with any eyes (Okabe and Ito), then darker ones of the same.
constexpr const char *colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                                   "#56b4e9", "#000000", "#7a5195", "#003f5c", "#8a3d00",
                                   "#00543d", "#7d4a66", "#806000", "#2f6f8f", "#555555",
                                   "#a05195", "#665191", "#2f4b7c"};

std::string escaped(const std::string &text) {
  std::string out;
  for (char c : printable(text, false)) // XML has no control characters
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

/// A logarithmic axis over whole decades, or halves of them (3.16) at its ends.
struct Axis {
  double least = 1, most = 10;

  void cover(double low, double high) {
    least = std::pow(10, std::floor(2 * std::log10(low)) / 2);
    most = std::pow(10, std::ceil(2 * std::log10(high)) / 2);
    if (most <= least)
      most = least * 10;
  }
  double share(double value) const { return std::log(value / least) / std::log(most / least); }
  /// 1, 2 and 5 of each decade inside.
  std::vector<double> ticks() const {
    std::vector<double> values;
    for (double decade = std::pow(10, std::floor(std::log10(least))); decade <= most; decade *= 10)
      for (double step : {1.0, 2.0, 5.0})
        if (decade * step >= least * 0.999 && decade * step <= most * 1.001)
          values.push_back(decade * step);
    return values;
  }
};

class Drawing {
public:
  Drawing() {
    text = fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
                       "width=\"{0}\" height=\"{1}\" font-family=\"sans-serif\" "
                       "font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
                       width, height);
  }
  void line(double x1, double y1, double x2, double y2, const std::string &style) {
    text += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1,
                        y1, x2, y2, style);
  }
  void words(double x, double y, const std::string &what, const std::string &style = {}) {
    text +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, style, escaped(what));
  }
  void dot(double x, double y, const std::string &colour, const std::string &title) {
    text += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\" fill=\"{}\" "
                        "stroke=\"white\"><title>{}</title></circle>\n",
                        x, y, colour, escaped(title));
  }
  std::string done() const { return text + "</svg>\n"; }

private:
  std::string text;
};

} // namespace

std::string rooflineSvg(const Roofline &roofline) {
  std::vector<RooflinePoint> points;
  for (const RooflinePoint &point : roofline.points)
    if (point.intensity > 0 && point.teraflops > 0)
      points.push_back(point);
  double bytes = std::max(roofline.gigabytesPerSecond, 1.0) * 1e9;
  double topSpeed = roofline.teraflops, leastSpeed = topSpeed > 0 ? topSpeed / 10 : 10;
  double leastX = points.empty() ? 10 : points.front().intensity,
         mostX = topSpeed > 0 ? topSpeed * 1e12 / bytes * 2 : 1000;
  for (const RooflinePoint &point : points) {
    topSpeed = std::max(topSpeed, point.teraflops);
    leastSpeed = std::min(leastSpeed, point.teraflops);
    leastX = std::min(leastX, point.intensity);
    mostX = std::max(mostX, point.intensity);
  }
  Axis xAxis, yAxis;
  xAxis.cover(leastX / 1.2, mostX * 1.2);
  yAxis.cover(leastSpeed / 1.5, std::max(topSpeed, 1.0) * 1.3);
  auto x = [&](double value) { return left + plotWidth * xAxis.share(value); };
  auto y = [&](double value) { return top + plotHeight * (1 - yAxis.share(value)); };

  Drawing drawing;
  drawing.words(left, 28, roofline.title, "font-size=\"18\" font-weight=\"bold\"");
  drawing.words(left, 48, roofline.subtitle, "fill=\"#555\"");
  for (double tick : xAxis.ticks()) {
    drawing.line(x(tick), top, x(tick), top + plotHeight, "stroke=\"#e4e4e4\"");
    drawing.words(x(tick), top + plotHeight + 18, fmt::format("{:g}", tick),
                  "text-anchor=\"middle\" fill=\"#333\"");
  }
  for (double tick : yAxis.ticks()) {
    drawing.line(left, y(tick), left + plotWidth, y(tick), "stroke=\"#e4e4e4\"");
    drawing.words(left - 8, y(tick) + 4, fmt::format("{:g}", tick),
                  "text-anchor=\"end\" fill=\"#333\"");
  }
  drawing.line(left, top + plotHeight, left + plotWidth, top + plotHeight, "stroke=\"#333\"");
  drawing.line(left, top, left, top + plotHeight, "stroke=\"#333\"");
  drawing.words(left + plotWidth / 2, height - 30,
                "operations a byte (active weights, scales, rows of x and y once)",
                "text-anchor=\"middle\"");
  drawing.words(24, top + plotHeight / 2, "TFLOP/s of real rows",
                fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 24 {:.0f})\"",
                            top + plotHeight / 2));

  // The memory line ends where it meets the other, or the frame.
  double ridge = roofline.teraflops > 0 ? roofline.teraflops * 1e12 / bytes : xAxis.most;
  double endX = std::min({ridge, xAxis.most, yAxis.most * 1e12 / bytes});
  double beginX = std::max(xAxis.least, yAxis.least * 1e12 / bytes);
  const std::string ceiling = "stroke=\"#333\" stroke-width=\"2\"";
  if (roofline.gigabytesPerSecond > 0 && beginX < endX) {
    drawing.line(x(beginX), y(beginX * bytes / 1e12), x(endX), y(endX * bytes / 1e12), ceiling);
    double middle = std::sqrt(beginX * endX), at = y(middle * bytes / 1e12);
    double angle =
        std::atan2(y(endX * bytes / 1e12) - y(beginX * bytes / 1e12), x(endX) - x(beginX)) * 180 /
        3.14159265358979;
    drawing.words(x(middle), at - 8,
                  fmt::format("{:.0f} GB/s, {}", roofline.gigabytesPerSecond, roofline.memoryText),
                  fmt::format("text-anchor=\"middle\" transform=\"rotate({:.1f} {:.1f} {:.1f})\"",
                              angle, x(middle), at));
  }
  if (roofline.teraflops > 0) {
    drawing.line(x(std::clamp(ridge, xAxis.least, xAxis.most)), y(roofline.teraflops),
                 left + plotWidth, y(roofline.teraflops), ceiling);
    drawing.words(left + plotWidth - 4, y(roofline.teraflops) - 8,
                  fmt::format("{:.0f} TFLOP/s, {}", roofline.teraflops, roofline.computeText),
                  "text-anchor=\"end\"");
  }

  // Labels that would lie over another are left out; the dot's title says the same.
  std::vector<std::pair<double, double>> labels;
  auto isFree = [&](double labelX, double labelY) {
    return std::none_of(labels.begin(), labels.end(), [&](const auto &other) {
      return std::fabs(other.first - labelX) < 22 && std::fabs(other.second - labelY) < 10;
    });
  };
  std::vector<std::string> series;
  for (const RooflinePoint &point : points)
    if (std::find(series.begin(), series.end(), point.series) == series.end())
      series.push_back(point.series);
  for (size_t s = 0; s < series.size(); ++s) {
    const std::string colour = colours[s % std::size(colours)];
    const RooflinePoint *before = nullptr;
    for (const RooflinePoint &point : points) {
      if (point.series != series[s])
        continue;
      if (before)
        drawing.line(x(before->intensity), y(before->teraflops), x(point.intensity),
                     y(point.teraflops),
                     fmt::format("stroke=\"{}\" stroke-opacity=\"0.4\"", colour));
      before = &point;
    }
    for (const RooflinePoint &point : points)
      if (point.series == series[s]) {
        drawing.dot(
            x(point.intensity), y(point.teraflops), colour,
            fmt::format("{}, {}: {:.0f} TFLOP/s", point.series, point.label, point.teraflops));
        double labelX = x(point.intensity) + 7, labelY = y(point.teraflops) + 13;
        if (!isFree(labelX, labelY))
          continue;
        labels.emplace_back(labelX, labelY);
        drawing.words(labelX, labelY, point.label,
                      fmt::format("font-size=\"10\" fill=\"{}\"", colour));
      }
    double at = top + 10 + 22 * double(s);
    drawing.dot(left + plotWidth + 24, at, colour, series[s]);
    drawing.words(left + plotWidth + 36, at + 4, series[s], "font-size=\"12\"");
  }
  return drawing.done();
}

} // namespace moejit::tool
