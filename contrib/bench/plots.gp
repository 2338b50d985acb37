# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# One plot of the bench: medians with their quartiles, a line for each peer. `plot`, beside this file, sets output and
# format ("svg" or "png"), heading, xname, yname and files, which have the columns size, median and quartiles.
if (format eq "svg") {
	set terminal svg size 720,440 font "sans,12" noenhanced background rgb "white"
} else {
	set terminal pngcairo size 720,440 font "sans,10" noenhanced
}
set output output
set title heading
set xlabel xname
set ylabel yname
if (xname eq "bytes") {
	set logscale x 2
} else {
	set logscale x 10
}
set logscale y
set format x (xname eq "bytes" ? "%.0b%B" : "%g")
set format y "%g"
set grid
set key outside right top
plot for [file in files] file using 1:2:3:4 with yerrorlines pointtype 7 pointsize 0.5 title columnheader(2)
