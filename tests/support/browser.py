"""Prints a page after its scripts have run in the Chromium of Qt: `python browser.py PAGE.html`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PATIENCE = 60  # seconds


def main(page: str) -> int:
    """Load the file `page`, wait until its root element has data-ready or data-error, and print its HTML."""
    os.environ |= {"QT_QPA_PLATFORM": "offscreen", "QTWEBENGINE_DISABLE_SANDBOX": "1"}
    os.environ |= {"QTWEBENGINE_CHROMIUM_FLAGS": "--disable-gpu"}
    from PySide6.QtCore import QTimer, QUrl
    from PySide6.QtWebEngineWidgets import QWebEngineView
    from PySide6.QtWidgets import QApplication

    app, view, every = QApplication([]), QWebEngineView(), QTimer()
    asked = "['ready', 'error'].some((name) => name in document.documentElement.dataset)"

    def written(html: str) -> None:
        print(html)
        app.quit()

    def settled(done: bool) -> None:
        if done and every.isActive():
            every.stop()
            view.page().toHtml(written)

    every.timeout.connect(lambda: view.page().runJavaScript(asked, settled))
    QTimer.singleShot(1000 * PATIENCE, app.quit)
    view.resize(1280, 900)
    view.show()
    view.loadFinished.connect(lambda _: every.start(50))
    view.load(QUrl.fromLocalFile(str(Path(page).resolve())))
    status: int = app.exec()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
