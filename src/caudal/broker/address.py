"""The address and the credentials of a RabbitMQ node. Neither str nor repr shows the password."""

from dataclasses import dataclass, field
from urllib.parse import quote, urlencode


@dataclass(frozen=True)
class Address:
    """The address of one node."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    vhost: str = "/"
    tls: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def url(self, **options: int) -> str:
        """Return the URL for the AMQP library.

        Use it for nothing else: it contains the password.
        """
        who = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        scheme = "amqps" if self.tls else "amqp"
        return f"{scheme}://{who}@{self}/{quote(self.vhost, safe='')}?{urlencode(options)}"

    def censored(self, text: str) -> str:
        """Return the text with this password replaced by `***`."""
        for secret in {self.password, quote(self.password, safe="")} - {""}:
            text = text.replace(secret, "***")
        return text
