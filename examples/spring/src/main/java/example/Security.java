package example;

import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.rsocket.EnableRSocketSecurity;
import org.springframework.security.config.annotation.rsocket.RSocketSecurity;
import org.springframework.security.core.userdetails.MapReactiveUserDetailsService;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.rsocket.core.PayloadSocketAcceptorInterceptor;

@Configuration
@EnableRSocketSecurity
public class Security {
    @Bean
    MapReactiveUserDetailsService users() {
        return new MapReactiveUserDetailsService(
            User.withUsername("ada").password("{noop}s3cret").roles("READER").build());
    }

    @Bean
    PayloadSocketAcceptorInterceptor authentication(RSocketSecurity security) {
        return security
            .authorizePayload(rule -> rule.setup().authenticated().anyRequest().authenticated().anyExchange().permitAll())
            .simpleAuthentication(Customizer.withDefaults())
            .build();
    }
}
