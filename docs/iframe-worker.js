// Search from a disk: browsers start no Worker for a file, so that the search runs in a hidden frame instead.
class IFrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.append(this.frame);
    this.inside = this.frame.contentWindow;
    this.ready = new Promise((done) => this.frame.addEventListener("load", done, { once: true }));
    const page = this.inside.document;
    page.open();
    page.write(`<script>
      postMessage = (data) => window.dispatchEvent(new CustomEvent("told", { detail: data }));
      importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((done, failed) => {
        const script = document.createElement("script");
        Object.assign(script, { src: url, onload: done, onerror: failed });
        document.body.append(script);
      })), Promise.resolve());
    </script><body><script src="${url}"></script></body>`);
    page.close();
    this.inside.addEventListener("told", ({ detail }) =>
      this.dispatchEvent(new MessageEvent("message", { data: detail })));
  }
  postMessage(data) {
    this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
  }
  terminate() {
    this.frame.remove();
  }
}
if (location.protocol === "file:") Object.assign(window, { IFrameWorker, Worker: IFrameWorker });
