package example;

import static org.springframework.security.core.authority.AuthorityUtils.createAuthorityList;

import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.authentication.ReactiveAuthenticationManager;
import org.springframework.security.authentication.UserDetailsRepositoryReactiveAuthenticationManager;
import org.springframework.security.authentication.UsernamePasswordAuthenticationToken;
import org.springframework.security.config.annotation.rsocket.EnableRSocketSecurity;
import org.springframework.security.config.annotation.rsocket.RSocketSecurity;
import org.springframework.security.core.Authentication;
import org.springframework.security.core.userdetails.MapReactiveUserDetailsService;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.oauth2.server.resource.InvalidBearerTokenException;
import org.springframework.security.oauth2.server.resource.authentication.BearerTokenAuthenticationToken;
import org.springframework.security.rsocket.core.PayloadSocketAcceptorInterceptor;
import reactor.core.publisher.Mono;

@Configuration
@EnableRSocketSecurity
public class Security {
    @Bean
    MapReactiveUserDetailsService users() {
        return new MapReactiveUserDetailsService(
            User.withUsername("ada").password("{noop}s3cret").roles("READER").build(),
            User.withUsername("grace").password("{noop}h0pper").roles("ADMIN").build());
    }

    @Bean
    PayloadSocketAcceptorInterceptor authentication(RSocketSecurity security, MapReactiveUserDetailsService users) {
        ReactiveAuthenticationManager passwords = new UserDetailsRepositoryReactiveAuthenticationManager(users);
        return security
            .authorizePayload(rule -> rule
                .setup().authenticated()
                .route("quotes.admin").hasRole("ADMIN")
                .anyRequest().authenticated()
                .anyExchange().permitAll())
            .simpleAuthentication(simple -> simple.authenticationManager(given ->
                given instanceof BearerTokenAuthenticationToken token ? bearer(token) : passwords.authenticate(given)))
            .build();
    }

    // Stands for a JwtReactiveAuthenticationManager.
    static Mono<Authentication> bearer(BearerTokenAuthenticationToken given) {
        return "t0ken".equals(given.getToken())
            ? Mono.just(new UsernamePasswordAuthenticationToken("robot", given, createAuthorityList("ROLE_ADMIN")))
            : Mono.error(new InvalidBearerTokenException("unknown token"));
    }
}
