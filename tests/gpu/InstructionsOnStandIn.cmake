# Single instructions with the emulator on both sides: everything is equal, and what is altered is found.
# -DINSTRUCTIONS=… (program) -DWORK=… (folder of the stand-in driver)
set(units ${WORK}/units)
set(kept ${WORK}/instructions)
file(MAKE_DIRECTORY ${units} ${kept})
file(WRITE ${units}/bundle ${kept})

# Runs the program while the stand-in misbehaves as `fault` says; sets `status` and `output`.
function(run fault)
  file(WRITE ${units}/fault "${fault}\n")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${WORK}:$ENV{LD_LIBRARY_PATH} ${INSTRUCTIONS}
      --work ${WORK}/instruction-units --units ${kept} ${ARGN}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(status "${status}" PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect wantedStatus pattern what)
  if(NOT status EQUAL wantedStatus OR NOT output MATCHES "${pattern}")
    file(REMOVE ${units}/fault ${units}/bundle)
    message(FATAL_ERROR "${what}: exit code ${status}, expected ${wantedStatus} and ${pattern}\n${output}")
  endif()
endfunction()

run("none 0" --rounds 4)
if(status EQUAL 2 AND output MATCHES "NVRTC")
  file(REMOVE ${units}/fault ${units}/bundle)
  message(STATUS "not run: ${output}")
  return()
endif()
expect(0 "every instruction as on the emulator" "one emulator beside another")
message(STATUS "${output}")
foreach(instruction cp-async cp-async-barrier ldmatrix tma-store griddepcontrol mma-fp8 mma-bf16 mma-f16)
  run("wrong 1" --rounds 1 --only ${instruction})
  expect(1 "DIFFERS ${instruction}" "an altered result of ${instruction}")
endforeach()
run("fault 1" --rounds 1 --only ldmatrix)
expect(3 "the context was lost: .*waiting for the kernel" "a fault")
file(REMOVE ${units}/fault ${units}/bundle)
