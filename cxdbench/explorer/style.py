"""The explorer's looks: one sheet for all panels, in Lab's own colours, so that light and dark come by themselves."""

HEIGHT = 572   # px; with Lab's bars and the cell's own lines it stands on a screen of 1280 x 800 without scrolling
LEFT = "clamp(240px, 26%, 340px)"    # the controls: narrow beside Lab's open side bar, wider on a wide screen
RIGHT = "clamp(240px, 27%, 380px)"   # the table

CSS = f"""<style>
.cxd {{ --jp-widgets-inline-height: 22px; --jp-widgets-font-size: 12px; --jp-widgets-inline-margin: 1px;
  --jp-widgets-inline-label-width: 94px; height: {HEIGHT}px; overflow: hidden; gap: 4px;
  color: var(--jp-ui-font-color1); font-size: 12px; line-height: 1.3; }}
.cxd .widget-box {{ overflow: hidden; }}
.cxd .cxd-left {{ flex: 0 0 {LEFT}; }}
.cxd .cxd-centre {{ flex: 1 1 0; min-width: 300px; }}
.cxd .cxd-right {{ flex: 0 0 {RIGHT}; overflow: hidden; }}
.cxd .cxd-main {{ flex: 1 1 0; min-height: 0; gap: 8px; }}
.cxd .cxd-left .widget-inline-hbox {{ width: 100%; margin: 0; height: 24px; }}
.cxd .widget-readout {{ min-width: 46px; max-width: 60px; margin-left: 4px; text-align: right; }}
.cxd .jupyter-button {{ height: 24px; line-height: 24px; padding: 0 8px; width: auto; }}
.cxd .cxd-bar {{ gap: 4px; align-items: center; flex-wrap: nowrap; }}
.cxd .cxd-tab.jupyter-button {{ background: transparent; border-bottom: 2px solid transparent; }}
.cxd .cxd-tab.cxd-on {{ border-bottom-color: var(--jp-brand-color1); font-weight: 600; }}
.cxd .cxd-fold.jupyter-button {{ width: 100%; text-align: left; background: transparent;
  border-top: 1px solid var(--jp-border-color2); margin: 0; }}
.cxd .cxd-fold.jupyter-button:focus:not(:disabled) {{ color: inherit; }}
.cxd table {{ border-collapse: collapse; width: 100%; font-size: 12px; font-variant-numeric: tabular-nums; margin: 0; }}
.cxd td, .cxd th {{ padding: 2px 4px; text-align: right; border: 0; background: transparent; font-weight: 400; }}
.cxd th {{ color: var(--jp-ui-font-color2); }}
.cxd tr > :first-child {{ text-align: left; }}
.cxd thead tr {{ border-bottom: 1px solid var(--jp-border-color2); background: transparent; }}
.cxd tbody tr {{ background: transparent !important; }}
.cxd .cxd-faint {{ opacity: .45; }}
.cxd .cxd-small {{ font-size: 11px; color: var(--jp-ui-font-color2); }}
.cxd .cxd-bokeh {{ min-height: 0; }}
.cxd .cxd-foot {{ flex: 0 0 34px; font-size: 11px; line-height: 17px; color: var(--jp-ui-font-color2); }}
.cxd .cxd-foot b {{ font-weight: 600; color: var(--jp-ui-font-color1); }}
.cxd .cxd-wrong {{ color: var(--jp-error-color1, #c8553d); }}
.cxd .widget-html, .cxd .widget-html-content {{ margin: 0; line-height: inherit; height: auto; overflow: hidden; }}
.cxd .cxd-pin.jupyter-button {{ background: transparent; padding: 0 4px; height: 18px; line-height: 18px; }}
</style>"""
