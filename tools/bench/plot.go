package main

import (
	"cmp"
	"image/color"
	"os"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

func init() { plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"} }

// drawCharts writes the pictures of the page: a POST of each client, and what
// can be switched on.
func (r *results) drawCharts(name string) error {
	var clients, extras []id
	for _, of := range slices.Backward(r.order) { // bars are drawn from the bottom up
		switch {
		case of.bench == post && of.subject != byHand:
			clients = append(clients, of)
		case floorOf(of) == on("none") && of != on("none"):
			extras = append(extras, of)
		}
	}
	if err := r.chart(name+".svg", clients); err != nil {
		return err
	}
	return r.chart(name+"-extras.svg", extras)
}

// chart has two plots of horizontal bars. A bar goes to the median; the line on
// it is the confidence interval.
func (r *results) chart(file string, of []id) error {
	canvas := vgsvg.New(24*vg.Centimeter, vg.Length(2+len(of))*vg.Centimeter)
	plots := [][]*plot.Plot{{r.bars("Time", of, "sec/op"), r.bars("Allocations", of, "allocs/op")}}
	for i, at := range plot.Align(plots, draw.Tiles{Rows: 1, Cols: 2}, draw.New(canvas))[0] {
		plots[0][i].Draw(at)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = canvas.WriteTo(f)
	return err
}

func (r *results) bars(title string, of []id, unit string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.X.Min = title, "times the floor's", 0
	p.Title.Padding, p.Y.Padding = vg.Centimeter/2, vg.Centimeter/2
	var names []string
	for i, one := range of {
		f := r.series[one][unit].over(r.series[floorOf(one)][unit]).figure()
		bar, _ := plotter.NewBarChart(plotter.Values{f.mid}, vg.Centimeter/2) // a number is never refused
		bar.Horizontal, bar.XMin, bar.LineStyle.Width = true, float64(i), 0
		bar.Color = color.Gray{Y: 170}
		if one.subject == own {
			bar.Color = color.RGBA{R: 11, G: 98, B: 196, A: 255}
		}
		interval, _ := plotter.NewXErrorBars(within{f, float64(i)})
		p.Add(bar, interval)
		names = append(names, labels.Replace(cmp.Or(one.subject, one.bench)))
	}
	p.NominalY(names...)
	return p
}

// within is the one point of a figure with its interval.
type within struct {
	figure
	at float64
}

func (w within) Len() int                       { return 1 }
func (w within) XY(int) (x, y float64)          { return w.mid, w.at }
func (w within) XError(int) (low, high float64) { return w.low - w.mid, w.high - w.mid }
