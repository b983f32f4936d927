"""Where a RabbitMQ node listens and who we are to it. The password shows nowhere by itself."""

from dataclasses import dataclass, field
from urllib.parse import quote, urlencode


@dataclass(frozen=True)
class Address:
    """One node."""

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
        """For the AMQP library only: it holds the password."""
        who = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        scheme = "amqps" if self.tls else "amqp"
        return f"{scheme}://{who}@{self}/{quote(self.vhost, safe='')}?{urlencode(options)}"

    def censored(self, text: str) -> str:
        """The text without this password."""
        for secret in {self.password, quote(self.password, safe="")} - {""}:
            text = text.replace(secret, "***")
        return text
