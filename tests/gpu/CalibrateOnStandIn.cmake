# The calibration with the emulator on both sides: everything is equal, and what is altered is found.
# The stand-in has compiled units of its own: a unit that is loaded serves one emulator of a process.
# -DBUNDLE=… -DCALIBRATE=… (programs) -DKERNELS=… (catalogue) -DWORK=… (folder of the stand-in driver)
include(${CMAKE_CURRENT_LIST_DIR}/OnStandIn.cmake)
set(folder ${WORK}/light)
file(MAKE_DIRECTORY ${folder})
execute_process(COMMAND ${BUNDLE} -o ${folder} --kernels ${KERNELS} --group light COMMAND_ERROR_IS_FATAL ANY)
file(WRITE ${units}/bundle ${folder}/bundle)

macro(run fault)
  runProgram("${fault}" ${CALIBRATE} ${folder} --quick --work ${WORK}/calibrate-units ${ARGN})
endmacro()

set(few --only eager.w-channel --only grouped.w-block.x-group-mn.bf16.328x720 --only eager.w-block.x-group.bf16.512
  --only quantize.group-96 --only quantize.given)
run("none 0" --markdown ${folder}/calibration.md ${few})
expect(0 "specified . [0-9]+ . [0-9]+ . 100 %.*exact . [0-9]+ . [0-9]+ . 100 %.*random codes . [0-9]+ . [0-9]+ . 100 %"
  "one emulator beside another")
expect(0 "as it must be" "its last line")
expect(0 "error words.*every pair of codes.*x quantized in the launch.*How the tensor cores add.*None"
  "the whole page")
message(STATUS "${output}")
file(READ ${folder}/calibration.md page)
if(NOT page MATCHES "How the tensor cores add")
  message(FATAL_ERROR "no page was written")
endif()
run("none 0" --check-models)
expect(0 "sums are known by their models" "models")
run("wrong 3" --only quantize.group-96)
expect(1 "DIFFERS quantization: .*on the GPU.*here" "an altered code")
run("wrong 1" --only eager.w-channel)
expect(1 "DIFFERS eager, w-channel.*exact sums: element 0 of row 0.*DIFFERENT" "an altered result")
run("wrong 1" --only grouped.w-block.x-group-mn)
expect(1 "DIFFERS results of checked kernels" "an altered result of a checked kernel")
run("fault 2" --only eager.w-channel)
expect(3 "was lost: .*waiting for the kernel" "a fault")
run("none 0" --only no-such-kernel)
expect(1 "" "nothing to compare")
file(REMOVE ${units}/fault ${units}/bundle)
